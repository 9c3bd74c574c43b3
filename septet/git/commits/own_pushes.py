"""Record a work order's pushes: after a return to an earlier step, the work order may replace its own pushes."""

import json
from typing import Final

from septet.git.engine.place import Place
from septet.system.durable import write_durably

_FILE: Final = "pushed.json"
_OF: Final = ":"
"""The separator between a work order's id and a branch's name; neither can contain a colon."""


def note_push(place: Place, branch: str, sha: str) -> None:
    """Record, on disk, that `sha` is about to be pushed to `branch`."""
    pushes, key = _read(place), _key(place, branch)
    if sha not in pushes.get(key, []):
        pushes.setdefault(key, []).append(sha)
        write_durably(place.records / _FILE, json.dumps(pushes).encode())


def is_own_push(place: Place, branch: str, sha: str) -> bool:
    """Return whether this work order pushed `sha` to the origin's `branch`."""
    return sha in _read(place).get(_key(place, branch), [])


def pushed_branches(place: Place) -> tuple[str, ...]:
    """Return the branches that this work order has pushed to, the first push first."""
    keys = (key.rpartition(_OF) for key in _read(place))
    return tuple(branch for visitor, _, branch in keys if visitor == place.visitor)


def copy_pushes(lane: Place, place: Place) -> None:
    """Record the pushes of a lane's present visitor as pushes of `place`. Idempotent."""
    pushes = _read(lane)
    for branch in pushed_branches(lane):
        for sha in pushes[_key(lane, branch)]:
            note_push(place, branch, sha)


def _key(place: Place, branch: str) -> str:
    """Return the key of a branch's pushes, which differs for each work order that a lane serves."""
    return f"{place.visitor}{_OF}{branch}" if place.visitor else branch


def _read(place: Place) -> dict[str, list[str]]:
    try:
        pushes: dict[str, list[str]] = json.loads((place.records / _FILE).read_bytes())
    except FileNotFoundError:
        return {}
    return pushes
