"""Refuse commits with too large files or malformed objects before they leave this host."""

import os
import re
import shlex
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from septet.contracts.facts import FileChange
from septet.errors import EvidenceError
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.worktree.inside import read_inside
from septet.git.worktree.view import view_git
from septet.system.text import cut, name_some, one_line

_MIB: Final = 1024 * 1024
_MOST_BYTES: Final = 256 * _MIB
"""The most bytes of a work order's trees and commits; a hundred thousand files need a tenth of that."""
_FAULT: Final = re.compile(rb"object ([0-9a-f]{40}): (\w+)")
"""The pattern of a malformed object in the output of git's check, such as `fullPathname` or `hasDotgit`."""


def refuse_large_files(place: Place, changes: Iterable[FileChange]) -> None:
    """Refuse changed files of the worktree that are larger than the limit.

    Raises:
        EvidenceError: A file is larger; the message, for the agent, has the remedy and the limit's setting.
    """
    for change in changes if place.file_limit_bytes else ():
        try:
            facts = os.lstat(place.worktree / change.path)
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(facts.st_mode) and facts.st_size > place.file_limit_bytes:
            raise _too_large(place, change.path, facts.st_size, "")


def refuse_unfit_commits(place: Place, sha: str) -> None:
    """Refuse unpushed commits up to `sha` with too large files or malformed objects.

    Commits and trees are checked as by a receiving git with `transfer.fsckObjects`; many forges have no such
    check.

    Raises:
        EvidenceError: A commit is refused; the message names the file or the fault.
        GitError: git failed, or took too long.
    """
    if sha == place.base_sha:
        return
    git = view_git(place)
    known = ("--not", place.base_sha, "--alternate-refs")  # the mirror has the origin's commits
    listing = git.run("rev-list", "--objects", sha, *known, limit_bytes=_MOST_BYTES)
    if len(listing) >= _MOST_BYTES:
        raise _too_many(sha)
    names = dict(line.partition(b" ")[::2] for line in listing.splitlines())
    asked = b"\n".join((*names, b""))
    facts = git.run("cat-file", "--batch-check=%(objecttype) %(objectsize)", stdin=asked)
    folders, folder_bytes = [], 0
    for (name, path), fact in zip(names.items(), facts.splitlines(), strict=True):
        kind, _, size = fact.partition(b" ")
        if kind != b"blob":
            folders.append(name)
            folder_bytes += int(size)
        elif 0 < place.file_limit_bytes < int(size):
            raise _too_large(place, path.decode(errors="replace"), int(size), f" in the commits up to {sha[:12]}")
    if folder_bytes >= _MOST_BYTES:
        raise _too_many(sha)
    pack = git.run("pack-objects", "--stdout", "--quiet", stdin=b"\n".join((*folders, b"")))
    with tempfile.TemporaryDirectory(prefix="outgoing-", dir=place.records) as folder:
        file = Path(folder) / "objects.pack"
        file.write_bytes(pack)
        checked = git.try_run("index-pack", "--strict", str(file))
    if checked.exit_code:
        fault = _FAULT.search(checked.stderr)
        which = f"object {fault[1][:12].decode()} has {fault[2].decode()}" if fault else "git's check fails"
        raise EvidenceError(
            f"The commits up to {sha[:12]} hold what git refuses ({which}): recreate the branch's commits with "
            "`git add` and `git commit` alone, without names such as `.git` or with a slash in them.",
            remedy="`septet retry ID --from implement_plan` does the work again.",
        )


def _too_many(sha: str) -> EvidenceError:
    return EvidenceError(f"The commits up to {sha[:12]} add more than {_MOST_BYTES // _MIB} MiB of folders.")


def _too_large(place: Place, name: str, size: int, where: str) -> EvidenceError:
    limit = place.file_limit_bytes // _MIB
    return EvidenceError(
        f"{cut(one_line(name), 200)}{where} has {size // _MIB} MiB, and {limit} MiB are allowed for one: leave "
        "it out, or name it in .gitignore.",
        remedy="`septet retry ID --from implement_plan` does the work again. Where the file belongs there, raise "
        "SEPTET_FILE_LIMIT_MIB, restart the worker, then run `septet retry ID`.",
    )


_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_NAMED: Final = 5


def whole_lfs_files(place: Place, paths: Iterable[str]) -> str:
    """Return a warning about files that are committed whole although an attribute names Git LFS, or an empty text.

    The worktree's own attributes count; Septet's view has others, which run no filter.

    Raises:
        GitError: git cannot read the attributes.
    """
    whole = [path for path in paths if _is_whole(place, path)]
    if not whole or not any(_names_lfs(place, folder) for path in whole for folder in Path(path).parents):
        return ""
    with tempfile.TemporaryDirectory(dir=place.records, prefix="attributes-") as folder:
        Git(Path(folder), env=place.env).init("--bare")
        asked = Git(Path(folder), place.worktree, place.env)
        answer = asked.run(
            *("check-attr", "-z", "--stdin", "filter"),
            stdin=b"".join(os.fsencode(path) + b"\0" for path in whole),
            core__bare="false",
        )
    fields = answer.split(b"\0")
    kept = [os.fsdecode(path) for path, value in zip(fields[::3], fields[2::3], strict=False) if value == b"lfs"]
    if not kept:
        return ""
    command = shlex.join(("git", "lfs", "migrate", "import", "--no-rewrite", *kept[:_NAMED]))
    return (
        f"{name_some(kept, _NAMED)}: committed whole, though .gitattributes gives it to Git LFS: Septet runs no "
        f"filter. In a separate clone with git-lfs, check out the branch, run `{command}`, and push."
    )


def _is_whole(place: Place, path: str) -> bool:
    beginning = read_inside(place.worktree, path, len(_POINTER))
    return beginning is not None and beginning != _POINTER


def _names_lfs(place: Place, folder: Path) -> bool:
    return b"filter=lfs" in (read_inside(place.worktree, str(folder / ".gitattributes"), _MIB) or b"")
