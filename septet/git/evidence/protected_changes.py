"""Find protected paths that a commit or tree changes, directly or through a symlink."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from septet.errors import EvidenceError
from septet.git.engine.engine import Git
from septet.git.engine.objects import read_objects
from septet.git.engine.place import Place
from septet.git.worktree.view import view_git
from septet.protected_paths import ProtectedPaths

_RAW: Final = ("--raw", "-r", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=none")
_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_LISTED_BYTES: Final = 1024 * 1024 * 1024
"""The most bytes of a tree's list: enough for a million entries."""
_LINK: Final = b"120000"
_NO_FOLDERS: Final = (_LINK, b"160000")
"""The modes of entries that may replace a folder by other files: symlinks and submodules."""
_LINK_ENTRY: Final = re.compile(rb"(?:\A|\0)120000 blob ([0-9a-f]+)\t([^\0]*)")
_MOST_HOPS: Final = 40


@dataclass(frozen=True, slots=True)
class ProtectedChange:
    """A change of a protected path: no published commit has the same file at this path."""

    path: str
    """The path in the repository, with invisible characters escaped."""
    what: str
    """`added`, `changed`, `mode changed` or `deleted`; then perhaps `a symlink to PATH` or `through PATH`."""
    id: str
    """An id of this path with this content."""


@dataclass(frozen=True, slots=True)
class _Entry:
    old_mode: bytes
    mode: bytes
    old_object: bytes
    object: bytes


def protected_changes(
    place: Place, paths: ProtectedPaths, since: tuple[str, ...], tree: str
) -> tuple[ProtectedChange, ...]:
    """Return the protected paths that differ in `tree` from every commit in `since`, sorted by path.

    A rename counts as a deleted and a new path. A symlink counts if it is at or above a protected path, or leads
    to one. The target of a symlink at a protected path counts too.

    Args:
        since: Commits whose content was published already.
        tree: A commit, or a tree of the worktree's repository.

    Raises:
        EvidenceError: More files are changed than are checked.
        GitError: git failed, or took too long.
    """
    if paths.is_empty:
        return ()
    git = view_git(place)
    entries, *others = (_entries(git, commit, tree) for commit in since)
    changed = {path: entry for path, entry in entries.items() if all(path in other for other in others)}
    if not changed:
        return ()
    links = _links(git, tree)
    ways = {path: _way(path, links) for path in links if paths.cover(path) or paths.lead_through(path)}
    hops = {hop: path for path, way in ways.items() for hop in way[1:-1]}
    leading = {way[-1]: path for path, way in ways.items() if way[-1] != path}
    depths = {target.count("/") + 1 if target else 0 for target in leading}
    found = []
    for path, entry in sorted(changed.items()):
        through = _reason(paths, path, entry, links)
        if through is None and path in hops:
            through = f"through {visible(hops[path])}"
        elif through is None:
            through = _through(paths, path, leading, depths)
        if through is not None:
            found.append(_change(path, entry, through))
    return tuple(found)


def _reason(paths: ProtectedPaths, path: str, entry: _Entry, links: Mapping[str, str]) -> str | None:
    """Return an empty text if `path` itself counts, `a symlink to TARGET` if TARGET counts, else `None`."""
    if paths.cover(path):
        return ""
    if paths.lead_through(path) and {entry.mode, entry.old_mode} & set(_NO_FOLDERS):
        return ""
    if entry.mode == _LINK and path in links:
        for target in (_way(path, links)[-1], links[path]):
            if paths.cover(target) or paths.lead_through(target):
                return f"a symlink to {visible(target)}"
    return None


def _through(paths: ProtectedPaths, path: str, leading: Mapping[str, str], depths: set[int]) -> str | None:
    """Return `through NAME` if the symlink NAME leads from a protected path to `path`; otherwise `None`."""
    parts = path.split("/")
    for depth in depths:
        name = leading.get("/".join(parts[:depth])) if depth <= len(parts) else None
        if name is not None and paths.cover("/".join((name, *parts[depth:]))):
            return f"through {visible(name)}"
    return None


def _change(path: str, entry: _Entry, through: str) -> ProtectedChange:
    if entry.mode == b"000000":
        what = "deleted"
    elif entry.old_mode == b"000000":
        what = "added"
    else:
        what = "mode changed" if entry.old_object == entry.object else "changed"
    identity = b"\0".join((path.encode("utf-8", "surrogateescape"), entry.mode, entry.object))
    return ProtectedChange(
        path=visible(path),
        what=", ".join(filter(None, (what, through))),
        id=hashlib.sha256(identity).hexdigest()[:12],
    )


def visible(path: str) -> str:
    """Return a path with its invisible characters escaped."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in path.replace("\\", "\\\\"))


def _entries(git: Git, commit: str, tree: str) -> dict[str, _Entry]:
    fields = _whole(git, "diff-tree", *_RAW, commit, tree).split(b"\0")
    entries = {}
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, mode, old_object, new_object, _ = facts.removeprefix(b":").split(b" ")
        entries[_text(path)] = _Entry(old_mode, mode, old_object, new_object)
    return entries


def _links(git: Git, tree: str) -> dict[str, str]:
    """Return each symlink's target as written, by the symlink's path."""
    found = _LINK_ENTRY.findall(
        _whole(git, "ls-tree", "-r", "-z", "--full-tree", tree, most_bytes=_MOST_LISTED_BYTES)
    )
    if not found:
        return {}
    asked = b"".join(name + b"\n" for name, _ in found)
    sizes = git.run("cat-file", "--batch-check=%(objectsize)", stdin=asked).split()
    if sum(int(size) for size in sizes if size.isdigit()) > _MOST_BYTES:
        raise _too_much()
    targets = read_objects(git, dict.fromkeys(name.decode("ascii") for name, _ in found))
    return {_text(path): _text(targets[name.decode("ascii")] or b"") for name, path in found}


def _way(path: str, links: Mapping[str, str]) -> tuple[str, ...]:
    """Follow `path` in the tree; return the symlinks on the way, then the end, or `path` if it leads outside."""
    left, here, way = path.split("/"), list[str](), list[str]()
    while left:
        name = left.pop(0)
        if name in {"", "."}:
            continue
        if name == ".." and not here:
            return (*way, path)
        if name == "..":
            here.pop()
            continue
        link = "/".join((*here, name))
        target = links.get(link)
        if target is None:
            here.append(name)
            continue
        way.append(link)
        if len(way) > _MOST_HOPS or target.startswith("/"):
            return (*way, path)
        left = [*target.split("/"), *left]
    return (*way, "/".join(here))


def _whole(git: Git, *command: str, most_bytes: int = _MOST_BYTES) -> bytes:
    output = git.run(*command, limit_bytes=most_bytes + 1)
    if len(output) > most_bytes:
        raise _too_much()
    return output


def _too_much() -> EvidenceError:
    return EvidenceError(
        "The work changes more files than are looked at for protected paths.",
        remedy="Leave generated files out of it: name them in .gitignore, and recreate the branch's commits "
        "without them.",
    )


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
