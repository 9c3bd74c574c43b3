"""The host's bare mirror of a repository, which all workspaces share and which loses no objects."""

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from septet.errors import GitError, InvalidInputError, NotFoundError
from septet.git.engine.engine import Git, clear_stale_locks
from septet.git.engine.git_words import looks_damaged, shallow
from septet.git.engine.packs import has_many_loose_objects, has_many_packs, join_precious_packs
from septet.git.engine.place import mirror_lock
from septet.git.engine.remote import Remote, RemoteRefs
from septet.system.durable import hold_lock
from septet.system.text import count_noun

_PACK_FILES: Final = (".pack", ".rev", ".idx")
"""The files of a pack in the order of their creation; git looks for the index first."""
_UNPACK_LIMIT: Final = "fetch.unpackLimit"
"""The git setting by which a fetch makes one pack and no loose objects."""


def _mend(mirror: Path, remote: Remote) -> None:
    """Fetch a fresh mirror, and complete the damaged one from it. The caller holds the lock.

    Workspaces and vaults know the mirror's path, so it stays in place. New files are added, and files that they
    replace move to the folder `damaged`. git reads a good copy of an object if another copy is bad.
    """
    fresh = mirror.with_suffix(".mend")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        _make(fresh, remote.env)
        git = Git(fresh, env=remote.env)
        git.run("config", _UNPACK_LIMIT, "1")
        remote.fetch(fresh, *_REFSPECS)
        git.run("config", "--unset-all", _UNPACK_LIMIT)
        aside = mirror / "damaged" / secrets.token_hex(4)
        aside.mkdir(mode=0o700, parents=True)
        _lay_packs(fresh, mirror, aside)
        for name in ("HEAD", "config", "info/attributes", "refs", "packed-refs"):
            _exchange(fresh / name, mirror / name, aside)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _lay_packs(fresh: Path, mirror: Path, aside: Path) -> None:
    folder = mirror / "objects" / "pack"
    folder.mkdir(parents=True, exist_ok=True)
    packs = sorted((fresh / "objects" / "pack").glob("pack-*.pack"))
    for suffix in _PACK_FILES:
        for pack in packs:
            source = pack.with_suffix(suffix)
            if source.exists():
                _exchange(source, folder / source.name, aside)


def _exchange(source: Path, target: Path, aside: Path) -> None:
    """Move what is at `target` to `aside`, and `source` to `target`; a file is replaced in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_file():
        os.link(target, aside / target.name)
    elif target.exists():
        target.rename(aside / target.name)
    if source.exists():
        source.replace(target)


_HEADS: Final = "refs/heads/"
_REMOTE_HEADS: Final = "refs/remotes/origin/"
_REFSPECS: Final = (f"+{_HEADS}*:{_REMOTE_HEADS}*", "+refs/tags/*:refs/tags/*")
_SHA1_LENGTH: Final = 40
_USUAL_BRANCHES: Final = ("main", "master", "develop", "trunk")

# Workspaces borrow objects from here, so nothing may ever collect them: not git by itself (gc.auto), and not a
# person with `git gc` or `git prune` (preciousObjects). Filters stay off, so that a checkout runs no program and
# LFS pointers stay pointers.
_CONFIG: Final = """\
[core]
\trepositoryformatversion = 1
[extensions]
\tpreciousObjects = true
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""


@dataclass(frozen=True, slots=True)
class Base:
    """The branch and the commit from which a work order starts."""

    branch: str
    sha: str
    default_branch: str = ""
    """The origin's default branch; empty if it has none."""


def refresh_mirror(mirror: Path, remote: Remote, base: str | None = None) -> Base:
    """Fetch the origin into the mirror, which is created if missing; return the commit from which work starts.

    Concurrent calls wait for each other. Branches that the origin no longer has stay in the mirror. Without
    `base`, work starts from the origin's default branch.

    Raises:
        GitUnavailableError: The origin was not reached.
        NotFoundError: There is no such repository or branch.
        InvalidInputError: The repository has no commit, is shallow, or, without a `base`, has no default branch.
        GitError: The origin refused.
    """
    with hold_lock(mirror_lock(mirror)):
        os.utime(mirror_lock(mirror))  # the janitor reads here when a mirror was last used
        if not mirror.exists():
            unfinished = mirror.with_suffix(".new")
            shutil.rmtree(unfinished, ignore_errors=True)
            _make(unfinished, remote.env)
            unfinished.rename(mirror)
        clear_stale_locks(mirror)
        try:
            return _fetch_base(mirror, remote, base)
        except GitError as error:
            if error.retryable or not looks_damaged(error.message):
                raise
            _mend(mirror, remote)
            return _fetch_base(mirror, remote, base)


def find_base(git_dir: Path, env: Mapping[str, str], base: str | None = None) -> Base:
    """Return the commit from which a work order in a local repository would start; write nothing.

    Without `base`, work starts from the repository's default branch.

    Raises:
        NotFoundError: There is no such branch; the remedy names similar branches.
        InvalidInputError: The repository has no commit, is shallow, or, without a `base`, has no default branch.
        GitError: The repository cannot be read.
    """
    place = git_dir.parent if git_dir.name == ".git" else git_dir
    if (git_dir / "shallow").exists():
        raise shallow(str(place))
    refs = Remote(str(place), env).refs(git_dir, "HEAD", f"{_HEADS}*")
    branch = _branch(str(place), refs, base)
    return Base(branch, refs.shas[f"{_HEADS}{branch}"], _default_branch(refs))


def mend_mirror(mirror: Path, remote: Remote, commit: str) -> None:
    """Complete a damaged mirror from its origin, so that it has `commit` again; delete no file.

    Raises:
        SeptetError: The origin was not reached, refused the request, or no longer has the commit.
    """
    with hold_lock(mirror_lock(mirror)):
        _mend(mirror, remote)
        try:
            Git(mirror, env=remote.env).run("rev-list", "--objects", "--quiet", commit, timeout_seconds=600.0)
        except GitError as error:
            message = f"{mirror} is damaged, and its origin no longer has {commit[:12]}: {error.message}"
            remedy = (
                "The worktree and its snapshots are kept: see `septet rescue list`, and start a new work order."
            )
            raise GitError(message, remedy=remedy) from error


def tidy_mirror(mirror: Path, scratch: Path, env: Mapping[str, str]) -> None:
    """Join a mirror's packs and loose objects, if there are many.

    No object is deleted, because workspaces and vaults borrow them. git works in a temporary repository in
    `scratch`.

    Raises:
        GitError: git failed; every object is still in place.
    """
    if not (has_many_loose_objects(mirror) or has_many_packs(mirror)):
        return
    with hold_lock(mirror_lock(mirror)):
        join_precious_packs(Git(mirror, env=env), scratch)


def _fetch_base(mirror: Path, remote: Remote, base: str | None) -> Base:
    refs = remote.refs(mirror, "HEAD", f"{_HEADS}*")
    branch = _branch(remote.url, refs, base)
    try:
        remote.fetch(mirror, *_REFSPECS)
    except GitError as error:
        if "some local refs could not be updated" not in error.message:
            raise
        # A branch `a` is gone and `a/b` exists: the old name must make room. Its objects stay.
        remote.fetch(mirror, *_REFSPECS, prune=True)
    sha = Git(mirror, env=remote.env).text("rev-parse", "--verify", f"{_REMOTE_HEADS}{branch}^{{commit}}")
    return Base(branch, sha, _default_branch(refs))


def _make(folder: Path, env: Mapping[str, str]) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    Git(folder, env=env).init("--bare")
    with (folder / "config").open("a", encoding="utf-8") as config:
        config.write(_CONFIG)
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info" / "attributes").write_text("* -filter\n", encoding="utf-8")


def _branch(url: str, refs: RemoteRefs, base: str | None) -> str:
    branches = [name.removeprefix(_HEADS) for name in refs.shas if name.startswith(_HEADS)]
    if not branches:
        remedy = "Push a first commit to it." if "://" in url else "Commit something there first."
        raise InvalidInputError(f"{url} has no commit yet.", remedy=remedy)
    if any(len(sha) != _SHA1_LENGTH for sha in refs.shas.values()):
        raise InvalidInputError(
            f"{url} uses SHA-256 object names, which Septet does not support.",
            remedy="Use a repository with SHA-1 object names.",
        )
    if base is not None:
        name = base.removeprefix(_HEADS)
        if name not in branches:
            near = get_close_matches(name, branches) or _likeliest(branches, _default_branch(refs))
            others = f" and {count_noun(len(branches) - len(near), 'other')}" if len(branches) > len(near) else ""
            raise NotFoundError(
                f"base: {url} has no branch {name!r}.",
                remedy=f"It has {', '.join(near)}{others}. Start a new work order with `--base BRANCH`.",
            )
        return name
    if default := _default_branch(refs):
        return default
    if len(branches) == 1:
        return branches[0]
    remedy = f"Start a new work order with `--base BRANCH`: {', '.join(_likeliest(branches))} …"
    raise InvalidInputError(f"base: the HEAD of {url} names none of its branches.", remedy=remedy)


def _likeliest(branches: Sequence[str], default: str = "") -> list[str]:
    """Return the three likeliest base branches: the default branch, then branches with usual names."""
    usual = (default, *_USUAL_BRANCHES)
    return sorted(branches, key=lambda name: usual.index(name) if name in usual else len(usual))[:3]


def _default_branch(refs: RemoteRefs) -> str:
    """Return the origin's default branch; empty if it has none."""
    head = refs.head or ""
    return head.removeprefix(_HEADS) if head in refs.shas else ""
