"""Read a worktree's `.git` as data, so that nothing that an agent left there takes effect.

An agent may leave a link, a FIFO, a socket or a device anywhere in `.git`. git would then read another user's
file, or wait forever. Before git runs, `refuse_foreign` checks names, types and `alternates`. It does not check
HEAD, index and config: Septet reads HEAD and index as data, and never reads config.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.errors import WorkspaceError
from septet.git.engine.engine import clear_stale_locks
from septet.system.durable import close_after

_SHA: Final = re.compile(rb"[0-9a-f]{40}")
_REF: Final = re.compile(rb"refs/(?!.*(?:/\.|\.\.|//|\.lock(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\]+")
_HEAD_LIMIT_BYTES: Final = 4096
_FILE_LIMIT_BYTES: Final = 512 * 1024 * 1024
_UNFINISHED: Final = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}
REMEDY: Final = (
    "`septet retry ID --from STEP` starts that step again from its checkpoint. To look at the work first, "
    "write it to a new folder: `septet rescue restore SNAPSHOT --to DIR`."
)
"""The remedy for a broken `.git`. People should not use git in a worktree, where git obeys an agent's settings."""
_MOST_ENTRIES: Final = 1_000_000
_MOST_KNOWN: Final = 4_000
_plain_folders: dict[str, tuple[tuple[int, int, int], tuple[str, ...]]] = {}
"""For each folder known to have only files and folders: device, inode and change time, and its subfolders.

An agent cannot set a change time, and no agent works during the check.
"""


@dataclass(frozen=True, slots=True)
class Head:
    """A worktree's current branch and commit."""

    branch: str | None
    """The branch without `refs/heads/`; `None` if HEAD is detached."""
    sha: str


def read_head(git_dir: Path) -> Head:
    """Return the branch and commit of the worktree's HEAD.

    Raises:
        WorkspaceError: `.git` is missing or not a plain folder, or HEAD leads to no commit.
    """
    refuse_links(git_dir)
    content, name = read_file(git_dir / "HEAD", _HEAD_LIMIT_BYTES), b""
    for _ in range(5):
        value = (content or b"").strip()
        if _SHA.fullmatch(value):
            branch = os.fsdecode(name).removeprefix("refs/heads/") if name else None
            return Head(branch, value.decode("ascii"))
        ref = value.removeprefix(b"ref:").strip()
        if ref == value or not _REF.fullmatch(ref):
            break
        content, name = read_ref(git_dir, ref), name or ref
    raise WorkspaceError(f"HEAD of {git_dir} leads to no commit.", remedy=REMEDY)


def switch_head(git_dir: Path, branch: str, was: Head) -> None:
    """Make `branch` current if HEAD is still `was`; files and index stay.

    Raises:
        WorkspaceError: HEAD has moved, or a running git process is writing HEAD.
    """
    lock = git_dir / "HEAD.lock"
    try:
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    except FileExistsError as error:
        remedy = "Wait for that process or end it, then run `septet retry ID`."
        raise WorkspaceError(f"{lock} is held by a running git process.", remedy=remedy) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(b"ref: refs/heads/" + os.fsencode(branch) + b"\n")
        _expect_head(git_dir, was)
        lock.rename(git_dir / "HEAD")
    except BaseException:
        lock.unlink(missing_ok=True)
        raise


def _expect_head(git_dir: Path, head: Head) -> None:
    if read_head(git_dir) != head:
        raise WorkspaceError(f"HEAD of {git_dir} moved while it was switched.", remedy=REMEDY)


def unfinished_operation(git_dir: Path) -> str:
    """Return the operation that an agent left unfinished, such as `merge` or `rebase`; empty if there is none."""
    return next((what for name, what in _UNFINISHED.items() if os.path.lexists(git_dir / name)), "")


def clear_locks(git_dir: Path) -> None:
    """Delete the lock files of killed git processes; call this only while no agent runs in the worktree.

    Raises:
        WorkspaceError: `.git` has a link or a pipe in place of a folder.
        GitBusyError: A living git, such as a person's, holds a lock.
    """
    refuse_links(git_dir)
    if (heads := git_dir / "refs" / "heads").is_symlink():
        raise WorkspaceError(f"{heads} points outside the worktree.", remedy=REMEDY)
    clear_stale_locks(git_dir, git_dir.parent)


def refuse_links(git_dir: Path, branch: str = "") -> None:
    """Raise if `.git` has a link or a pipe in place of a folder into which Septet will write.

    Raises:
        WorkspaceError: `.git`, its objects, or a folder above `branch` is not a plain folder, or `info/exclude` is
            not a plain file.
    """
    ref = ("heads", *branch.split("/")[:-1])
    refs = git_dir / "refs"
    on_the_way = [refs.joinpath(*ref[:depth]) for depth in range(1, len(ref) + 1)]
    for folder in (git_dir, git_dir / "objects", refs):
        if not folder.is_dir() or folder.is_symlink():
            raise WorkspaceError(f"{folder} is no longer a plain folder.", remedy=REMEDY)
    if link := next((folder for folder in on_the_way if folder.is_symlink()), None):
        raise WorkspaceError(f"{link} points outside the worktree.", remedy=REMEDY)
    if (exclude := git_dir / "info" / "exclude").exists() and not exclude.is_file():
        raise WorkspaceError(f"{exclude} is not a plain file.", remedy=REMEDY)


def read_file(path: Path, limit_bytes: int = _FILE_LIMIT_BYTES) -> bytes | None:
    """Return a plain file's content; `None` if it is missing, too large, a link or a FIFO."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with close_after(descriptor):
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > limit_bytes:
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()


def read_ref(git_dir: Path, ref: bytes) -> bytes | None:
    """Return a ref's content, from its own file or `packed-refs`; `None` if there is no such ref."""
    loose = read_file(git_dir / os.fsdecode(ref), _HEAD_LIMIT_BYTES)
    if loose is not None:
        return loose
    line = rb"^([0-9a-f]{40}) " + re.escape(ref) + rb"$"
    packed = re.search(line, read_file(git_dir / "packed-refs") or b"", re.MULTILINE)
    return packed[1] if packed else None


def refuse_foreign(git_dir: Path, lender: bytes) -> None:
    """Raise if git would read anything but plain files and folders in a `.git`.

    The check needs one `lstat` for each of a few names and each folder of refs and objects. It lists only folders
    that changed since this process last listed them.

    Args:
        lender: The only folder from which `git_dir` may borrow objects, as the path in its `alternates`.

    Raises:
        WorkspaceError: The check failed; the message names the path.
    """
    _expect(git_dir, stat.S_ISDIR, "no plain folder")
    _expect(git_dir / "info", stat.S_ISDIR, "no plain folder")
    for name in ("packed-refs", "info/exclude"):
        _expect(git_dir / name, stat.S_ISREG, "no plain file")
    for name in ("refs", "objects"):
        _expect(git_dir / name, stat.S_ISDIR, "no plain folder")
        for seen, path in enumerate(_odd_entries(git_dir / name)):
            if path is not None:
                raise WorkspaceError(f"{path} is not a plain file or folder.", remedy=REMEDY)
            if seen > _MOST_ENTRIES:
                raise WorkspaceError(f"{git_dir / name} holds over {_MOST_ENTRIES} entries.", remedy=REMEDY)
    if os.path.lexists(alternates := git_dir / "objects" / "info" / "alternates"):
        content = read_file(alternates, len(lender) + 4096)
        if content is None or set(content.splitlines()) - {lender, b""}:
            raise WorkspaceError(f"{alternates} names objects outside the worktree.", remedy=REMEDY)


def _expect(path: Path, is_kind: Callable[[int], bool], what: str) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be checked: {error.strerror}.", remedy=REMEDY) from error
    if not is_kind(mode):
        raise WorkspaceError(f"{path} is {what}.", remedy=REMEDY)


def _odd_entries(folder: Path) -> Iterator[Path | None]:
    """Yield, for each entry below a folder, its path if it is neither file nor folder, and otherwise `None`."""
    folders = [os.fspath(folder)]
    while folders:
        path = folders.pop()
        try:
            facts = os.lstat(path)
            stamp = facts.st_dev, facts.st_ino, facts.st_ctime_ns
            known = _plain_folders.get(path)
            if known is not None and known[0] == stamp:
                folders += known[1]
                continue
            inner = []
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        inner.append(entry.path)
                        yield None
                    else:
                        yield None if entry.is_file(follow_symlinks=False) else Path(entry.path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise WorkspaceError(f"{error.filename} cannot be listed: {error.strerror}.", remedy=REMEDY) from error
        if len(_plain_folders) >= _MOST_KNOWN:
            _plain_folders.clear()
        _plain_folders[path] = stamp, tuple(inner)
        folders += inner
