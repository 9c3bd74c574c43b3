"""The results of a repository's checks on a base commit, shared by all work orders of a host.

The state directory has a folder for each pair of a base commit and settings that affect the results. The folder
contains the result and, while the checks run, a lock. A work order's records name the folder.
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


class FailedCheck(Wire):
    """A check that already fails on the base commit."""

    command: str
    why: str
    """The failed check's report, with its last output."""


class BaseChecks(Wire):
    """The results of the checks on a base commit."""

    base_branch: str
    base_sha: str
    failed: tuple[FailedCheck, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each failed check, for people."""
        where = f"on {self.base_branch} already, before any work."
        firsts = (each.why.partition("\n")[0].rstrip(":.") for each in self.failed)
        return tuple(f"{first} {where}" for first in firsts)

    @property
    def report(self) -> str:
        """A line for each failed check with its last output, for people."""
        printed = (each.why.partition("\n")[2] for each in self.failed)
        both = zip(self.lines, printed, strict=True)
        return "\n".join(f"{line.removesuffix('.')}:\n{rest}" if rest else line for line, rest in both)

    def fails(self, command: str) -> bool:
        """Return whether a check fails on the base commit."""
        return any(each.command == command for each in self.failed)

    def note(self) -> str:
        """Return a text for an agent's prompt; empty if all checks pass."""
        if not self.failed:
            return ""
        failures = "\n".join(f"- {each.why.strip()[:600]}".replace("\n", "\n  ") for each in self.failed)
        return (
            f"## Before this work\n\nOn {self.base_branch}, before any change, these checks of the repository "
            f"fail already:\n\n{failures}\n\nThe checks run again before the commit, and have to pass then: "
            "mend what they need. Where that cannot be done in this repository, your answer says why."
        )


class _Name(Wire):
    folder: str


def folder_for(state: StateDir, place: Place, settings: Sequence[object]) -> Path:
    """Return the folder for the check results of a base commit and settings; the folder may not exist yet.

    `settings` are all settings that affect the results, as JSON values.
    """
    facts = json.dumps([place.origin, place.base_sha, *settings], sort_keys=True)
    return state.base_checks / hashlib.sha256(facts.encode()).hexdigest()[:32]


def note_folder(place: Place, folder: Path) -> None:
    """Write the name of the folder with the check results into a work order's records."""
    write_durably(place.records / _NAME, _Name(folder=folder.name).model_dump_json().encode())


def read_result(folder: Path) -> BaseChecks | None:
    """Return the result in a folder; `None` before the result exists."""
    return read_model(folder / _RESULT, BaseChecks)


def forget_failure(folder: Path) -> None:
    """Delete the result in a folder if a check failed, so that the checks run again."""
    result = read_result(folder)
    if result is not None and result.failed:
        (folder / _RESULT).unlink(missing_ok=True)


def write_result(folder: Path, result: BaseChecks) -> None:
    """Write the result for all work orders on the same base commit and settings."""
    write_durably(folder / _RESULT, result.model_dump_json().encode())


def result_of(state: StateDir, place: Place) -> BaseChecks | None:
    """Return the results of the checks on a work order's base commit; `None` before the checks have run."""
    name = read_model(place.records / _NAME, _Name)
    return read_result(state.base_checks / name.folder) if name is not None else None
