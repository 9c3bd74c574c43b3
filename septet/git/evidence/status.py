"""Run `git status` in Septet's view of a worktree, and only after a change."""

import time
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.vault.contents import clock_step_ns
from septet.git.vault.survey import FIGURES, GIT_FOLDER, Look, Survey
from septet.git.worktree.dot_git import Head

_PASSED: Final = tuple(GIT_FOLDER + b"/" + name for name in (b"objects", b"refs", b"logs"))
"""Folders of `.git` on which `git status` depends only through HEAD."""
_CTIME: Final = 3
"""The place of the change time among the numbers of a name in a survey."""
_MOST_STATUSES: Final = 16
_MOST_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class _Status:
    """The output of `git status`, and the state of the worktree to which the output belongs."""

    head: str
    looks: dict[bytes, Look]
    closed: dict[bytes, str]
    output: bytes = b""


_statuses: Final = dict[Path, _Status]()
"""The last status of each worktree by its records' folder, for steps after which no file has changed."""


def read_status_output(git: Git) -> bytes:
    """Return the output of `git status`; submodules count by their commits alone."""
    # Inside a submodule git would start another git, which reads the submodule's own config: its HEAD is enough.
    return git.run("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=dirty")


def recall_status_output(git: Git, place: Place, head: Head, survey: Survey) -> bytes:
    """Return the output of `git status`; git runs only if a file or HEAD has changed since the last call."""
    looks = {
        path: look for path, look in survey.looks.items() if path != GIT_FOLDER and not path.startswith(_PASSED)
    }
    now = _Status(head.sha, looks, survey.closed)
    last = _statuses.pop(place.records, None)
    is_same = last is not None and replace(last, output=b"") == now
    status = last if last is not None and is_same else replace(now, output=read_status_output(git))
    if sum(len(look.figures) for look in looks.values()) <= _MOST_BYTES and (is_same or _is_settled(looks)):
        if len(_statuses) >= _MOST_STATUSES:
            _statuses.clear()
        _statuses[place.records] = status
    return status.output


def _is_settled(looks: Mapping[bytes, Look]) -> bool:
    """Return whether a later write to any file will change its time stamp."""
    times = (array("q", look.figures)[_CTIME::FIGURES] for look in looks.values())
    newest = max((max(each, default=0) for each in times), default=0)
    return newest + clock_step_ns(newest) < time.time_ns()
