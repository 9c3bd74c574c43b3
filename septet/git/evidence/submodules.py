"""Submodules that the work has moved, and whether other people can fetch their new commits.

The engine reads from the submodule's origin. The engine runs no git in a submodule: the folder and the `.git` are
the agent's.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from septet.errors import InvalidInputError
from septet.git.engine.address import Address, parse_address
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.engine.remote import Remote
from septet.git.engine.remote_failures import failure_of
from septet.git.worktree.changes import shown_path
from septet.git.worktree.view import view_git

_GITLINK: Final = b"160000"
_NOT_THERE: Final = b"not our ref"
"""A server's message about a commit that it does not have."""
_FATAL: Final = 128
_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class MovedSubmodule:
    """A submodule whose commit differs from the commit at the start of the work."""

    path: str
    sha: str
    url: str
    """The submodule's URL in the work's `.gitmodules`; empty without a URL."""
    is_known: bool
    """Whether the base commit has that URL too, so that no agent can have invented it."""


def moved_submodules(place: Place, since: str, tree: str) -> list[MovedSubmodule]:
    """Return the submodules whose commit differs between `since` and the work.

    Args:
        place: The work order's place.
        since: The commit at the start of the work.
        tree: The tree of the work, or its last commit.

    Raises:
        GitError: git failed.
    """
    git = view_git(place)
    options = ("--raw", "-r", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules=none")
    raw = git.run("diff-tree", *options, since, tree).split(b"\0")
    rows = [(facts.split(b" "), path) for facts, path in zip(raw[::2], raw[1::2], strict=False)]
    moved = {path: facts[3].decode() for facts, path in rows if facts[1] == _GITLINK}
    if not moved:
        return []
    urls = _urls(git, f"{tree}:.gitmodules")
    known = set(_urls(git, f"{place.base_sha}:.gitmodules").values())
    named = ((path, sha, urls.get(path, "")) for path, sha in moved.items())
    return [MovedSubmodule(shown_path(path), sha, url, url in known) for path, sha, url in named]


def origin_of(place: Place, submodule: MovedSubmodule) -> Address | None:
    """Return the address of a submodule's origin; `None` if the engine may not read from it.

    The engine reads from the host of the work's own origin, or from the folder that holds that origin; from other
    hosts only over https, and only if the base commit has the URL: an agent could have written any other URL.
    """
    try:
        origin, address = parse_address(place.origin), parse_address(_absolute(submodule.url, place.origin))
    except InvalidInputError:
        return None
    if address.path is not None or origin.path is not None:
        is_beside = address.path and origin.path and address.path.parent == origin.path.parent
        return address if is_beside else None
    is_named = submodule.is_known and address.url.startswith("https://")
    return address if address.host == origin.host or is_named else None


def has_commit(place: Place, remote: Remote, sha: str) -> bool:
    """Return whether a remote has a commit; nothing of the commit is kept.

    Raises:
        GitUnavailableError: The remote was not reached.
        NotFoundError: There is no such repository.
        GitError: The remote refused.
    """
    fetch = ("fetch", "--quiet", "--depth=1", "--filter=tree:0", "--no-tags", "--no-recurse-submodules")
    with TemporaryDirectory(dir=place.records, prefix="ask-") as name:
        folder = Path(name)
        Git(folder, env=place.env).run("init", "--quiet", "--bare", "--template=")
        argv = (*fetch, "--no-write-fetch-head", "--", remote.url, sha)
        answer = remote.run(folder, *argv, ok=(0, 1, _FATAL), timeout_seconds=_SECONDS)
    if answer.exit_code != 0 and _NOT_THERE not in answer.stderr:
        raise failure_of("fetch", remote.url, answer.stderr)
    return answer.exit_code == 0


def _urls(git: Git, blob: str) -> dict[bytes, str]:
    """Return the URLs of a `.gitmodules` by submodule path; empty without such a file."""
    listed = git.try_run(
        "config", "--blob", blob, "--no-includes", "-z", "--get-regexp", r"^submodule\..*\.(path|url)$"
    )
    names: dict[bytes, dict[bytes, bytes]] = {}
    for line in listed.stdout.split(b"\0")[:-1]:
        key, _, value = line.partition(b"\n")
        name, _, what = key.rpartition(b".")
        names.setdefault(name, {})[what] = value
    return {each[b"path"]: os.fsdecode(each.get(b"url", b"")) for each in names.values() if b"path" in each}


def _absolute(url: str, origin: str) -> str:
    """Return the absolute form of `url`, which may be relative to `origin`; empty if it leads above the host."""
    if not url.startswith(("./", "../")):
        return url
    base = origin.rstrip("/")
    while url.startswith(("./", "../")):
        step, _, url = url.partition("/")
        base = base.rpartition("/")[0] if step == ".." else base
    return f"{base}/{url}" if base.rstrip("/:") else ""
