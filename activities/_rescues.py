"""The rescues of one work order, written down as they are taken: an attempt that dies forgets none."""

import os
from typing import Final

from pydantic import ValidationError

from septet.contracts.facts import Rescue
from septet.git.place import Place

_FILE: Final = "rescues.jsonl"


def note_rescue(place: Place, rescue: Rescue) -> None:
    """Write a rescue down, on disk."""
    file = os.open(place.books / _FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, rescue.model_dump_json().encode() + b"\n")
        os.fsync(file)
    finally:
        os.close(file)


def rescues_since(place: Place, *snapshots: str) -> tuple[Rescue, ...]:
    """Return what was kept since the last of some snapshots, oldest first; empty names stand for the beginning."""
    last = max(map(_number, snapshots), default=0)
    return tuple(rescue for rescue in _noted(place) if _number(rescue.snapshot) > last)


def _noted(place: Place) -> list[Rescue]:
    """Return all that was noted; half a line, of a machine that lost its power, is passed over."""
    try:
        lines = (place.books / _FILE).read_bytes().splitlines()
    except FileNotFoundError:
        return []
    rescues = []
    for line in lines:
        try:
            rescues.append(Rescue.model_validate_json(line))
        except ValidationError:
            continue
    return rescues


def _number(snapshot: str) -> int:
    """Return the number in `<work order>/<number>-<kind>`."""
    number = snapshot.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdigit() else 0
