"""Make the sample repository: a bare origin with one commit, and an issue on its forge."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.git.engine.engine import Git
from septet.sample.project import FILES, ISSUE_BODY, ISSUE_TITLE

_BRANCH: Final = "main"
_COMMITTER: Final = "Septet Sample <sample@septet.invalid> 1767225600 +0000"
"""A fixed person and date: the commit has the same id everywhere."""

AddIssue = Callable[[Path, str, str], int]
"""Adds an issue, with its title and body, to the forge of the bare repository, and returns its number."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A repository to try a work order on."""

    origin: Path
    """The bare repository."""
    issue: int
    """The number of the issue about its bug."""


def make_sample(to: Path, add_issue: AddIssue, env: Mapping[str, str]) -> Sample:
    """Make `shop.git` in the folder `to`, and the issue about its bug.

    Args:
        to: A folder of its own; made where it is missing.
        add_issue: The forge.
        env: The environment of git.

    Raises:
        GitError: git failed.
    """
    to.mkdir(parents=True, exist_ok=True)
    origin = to / "shop.git"
    git = Git(origin, env=env)
    git.run("init", "--quiet", "--bare", f"--initial-branch={_BRANCH}")
    git.run("fast-import", "--quiet", stdin=_commit("A shop with a total for every order", FILES))
    return Sample(origin, add_issue(origin, ISSUE_TITLE, ISSUE_BODY))


def _commit(message: str, files: Mapping[str, str]) -> bytes:
    """Return a commit in the language of `git fast-import`."""
    head = f"commit refs/heads/{_BRANCH}\ncommitter {_COMMITTER}\n".encode()
    contents = [f"M 100644 inline {path}\n".encode() + _data(text) for path, text in files.items()]
    return b"".join([head, _data(message), *contents])


def _data(text: str) -> bytes:
    content = text.encode()
    return b"data %d\n%b\n" % (len(content), content)
