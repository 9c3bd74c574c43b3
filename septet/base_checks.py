"""How a repository's checks end on a base commit, before any work: found once on a host, for all its work orders.

A folder of the state directory for each base commit and settings holds the result, and a lock while it is looked
for. A work order's records name the folder.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from septet.contracts.wire import Wire
from septet.git.engine.place import Place
from septet.state import StateDir
from septet.system.durable import read_model, write_durably

_RESULT: Final = "result.json"
_NAME: Final = "base-checks.json"
_DIGITS: Final = 32
_SHOWN: Final = 600


class FailedCheck(Wire):
    """A check that fails on the base commit already."""

    command: str
    why: str
    """What is told of a check that fails."""


class BaseChecks(Wire):
    """How the checks ended there."""

    base_branch: str
    base_sha: str
    failed: tuple[FailedCheck, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What people are told: a line for each that fails."""
        where = f"on {self.base_branch} already, before any work."
        firsts = (each.why.partition("\n")[0].rstrip(":.") for each in self.failed)
        return tuple(f"{first} {where}" for first in firsts)

    @property
    def report(self) -> str:
        """The same lines, each with what its check printed last."""
        printed = (each.why.partition("\n")[2] for each in self.failed)
        both = zip(self.lines, printed, strict=True)
        return "\n".join(f"{line.removesuffix('.')}:\n{rest}" if rest else line for line, rest in both)

    def fails(self, command: str) -> bool:
        """Say whether a check fails there."""
        return any(each.command == command for each in self.failed)

    def note(self) -> str:
        """Return what an agent is told; nothing where all checks pass."""
        if not self.failed:
            return ""
        failures = "\n".join(f"- {each.why.strip()[:_SHOWN]}".replace("\n", "\n  ") for each in self.failed)
        return (
            f"## Before this work\n\nOn {self.base_branch}, before any change, these checks of the repository "
            f"fail already:\n\n{failures}\n\nThe checks run again before the commit, and have to pass then: "
            "mend what they need. Where that cannot be done in this repository, your answer says why."
        )


class _Name(Wire):
    folder: str


def folder_for(state: StateDir, place: Place, settings: Sequence[object]) -> Path:
    """Return the folder for a work order's base commit and what decides how its checks end; nothing is made.

    Args:
        state: This host's.
        place: The workspace of the work order.
        settings: What else decides it, as values of JSON.
    """
    facts = json.dumps([place.origin, place.base_sha, *settings], sort_keys=True)
    return state.base_checks / hashlib.sha256(facts.encode()).hexdigest()[:_DIGITS]


def note_folder(place: Place, folder: Path) -> None:
    """Write down for a work order where its result is, or will be."""
    write_durably(place.records / _NAME, _Name(folder=folder.name).model_dump_json().encode())


def read_result(folder: Path) -> BaseChecks | None:
    """Return the result in a folder; `None` where there is none yet."""
    return read_model(folder / _RESULT, BaseChecks)


def forget_failure(folder: Path) -> None:
    """Have it looked for again whether checks fail there."""
    result = read_result(folder)
    if result is not None and result.failed:
        (folder / _RESULT).unlink(missing_ok=True)


def write_result(folder: Path, result: BaseChecks) -> None:
    """Write a result, for all work orders from here on."""
    write_durably(folder / _RESULT, result.model_dump_json().encode())


def result_of(state: StateDir, place: Place) -> BaseChecks | None:
    """Return how the checks ended on the base commit of a work order; `None` where that is not known yet."""
    name = read_model(place.records / _NAME, _Name)
    return read_result(state.base_checks / name.folder) if name is not None else None
