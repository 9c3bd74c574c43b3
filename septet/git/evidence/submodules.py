"""Find submodules that the work has moved to other commits, and check that other people can fetch these.

Septet reads the submodule's origin and runs no git inside a submodule, because an agent controls its `.git`.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from septet.errors import GitError, InvalidInputError, WorkspaceError
from septet.git.engine.address import Address, parse_address
from septet.git.engine.engine import Git
from septet.git.engine.git_words import failure_of
from septet.git.engine.place import Place
from septet.git.engine.remote import Remote
from septet.git.evidence.evidence import read_status_output
from septet.git.vault.survey import refuse_pipes
from septet.git.worktree.dot_git import read_file, read_head, refuse_foreign, refuse_links
from septet.git.worktree.view import read_status, shown_path, view_git

_GITLINK: Final = b"160000"
_NOT_THERE: Final = b"not our ref"
"""A server's message about a commit that it does not have."""
_POINTER: Final = b"gitdir: "
_DEEPEST: Final = 5


@dataclass(frozen=True, slots=True)
class MovedSubmodule:
    """A submodule with another commit than at the start of the work."""

    path: str
    sha: str
    url: str
    """The submodule's URL in the work's `.gitmodules`; empty if it has none."""
    is_known: bool
    """Whether the base commit's `.gitmodules` has the same URL, so that no agent has invented it."""


def moved_submodules(place: Place, since: str, tree: str) -> list[MovedSubmodule]:
    """Return the submodules whose commit differs between commit `since` and `tree`, the tree of the work.

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
    """Return the address of a submodule's origin; `None` if Septet may not read from it.

    An agent could have written any URL. Septet reads from the server or folder of the work's own origin. It reads
    from other servers only over https, and only if the base commit has the URL.
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
    """Fetch a commit from a remote into a temporary repository; return whether the remote has it.

    Raises:
        GitUnavailableError: The remote was not reached.
        NotFoundError: There is no such repository.
        GitError: The remote refused.
    """
    fetch = ("fetch", "--quiet", "--depth=1", "--filter=tree:0", "--no-tags", "--no-recurse-submodules")
    with TemporaryDirectory(dir=place.records, prefix="ask-") as name:
        folder = Path(name)
        Git(folder, env=place.env).init("--bare")
        argv = (*fetch, "--no-write-fetch-head", "--", remote.url, sha)
        answer = remote.run(folder, *argv, ok=(0, 1, 128), timeout_seconds=120.0)
    if answer.exit_code != 0 and _NOT_THERE not in answer.stderr:
        raise failure_of("fetch", remote.url, answer.stderr)
    return answer.exit_code == 0


def _urls(git: Git, blob: str) -> dict[bytes, str]:
    """Return the URLs in the `.gitmodules` at `blob`, by the submodules' paths; empty if the file is missing."""
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
    """Return a submodule's URL, with `./` and `../` resolved against `origin`; empty above the origin's root."""
    if not url.startswith(("./", "../")):
        return url
    base = origin.rstrip("/")
    while url.startswith(("./", "../")):
        step, _, url = url.partition("/")
        base = base.rpartition("/")[0] if step == ".." else base
    return f"{base}/{url}" if base.rstrip("/:") else ""


def edits_inside(place: Place, since: str) -> tuple[list[str], list[str]]:
    """Return the paths of uncommitted changes in submodules, and a text for each submodule that is unreadable.

    Files last changed before the ISO 8601 time `since` are left out, such as files that set-up has built.
    """
    if not has_submodules(place):
        return [], []
    refuse_pipes(place.worktree)
    found, unknown = list[str](), list[str]()
    began = int(datetime.fromisoformat(since).timestamp())
    waiting = [(place.worktree / os.fsdecode(path), 1) for path in _submodules(view_git(place))]
    while waiting:
        folder, depth = waiting.pop(0)
        try:
            if (git := _view_of(place, folder)) is None:
                continue
            edited = [folder / os.fsdecode(path) for path in _edits_in(git)]
            waiting += [(folder / os.fsdecode(path), depth + 1) for path in _submodules(git) if depth < _DEEPEST]
        except (GitError, WorkspaceError, OSError) as error:
            unknown.append(f"{_name_of(place, folder)}: {error}")
            continue
        found += [_name_of(place, path) for path in edited if _is_newer(path, began)]
    return found, unknown


def has_submodules(place: Place) -> bool:
    """Return whether the worktree has a `.gitmodules`."""
    return os.path.lexists(place.worktree / ".gitmodules")


def _submodules(git: Git) -> list[bytes]:
    listed = git.run("ls-files", "--stage", "-z").split(b"\0")
    return [line.partition(b"\t")[2] for line in listed if line.startswith(_GITLINK + b" ")]


def _edits_in(git: Git) -> Iterator[bytes]:
    entries = read_status(read_status_output(git))
    return (entry.path for entry in entries if entry.unstaged != ".")  # the index is the commit


def _view_of(place: Place, folder: Path) -> Git | None:
    """Return a repository of Septet for a submodule's files, with an index of the submodule's commit.

    `None` if the submodule is not checked out. The repository borrows the submodule's objects. Thereby no git
    reads the configuration that an agent left in a submodule.
    """
    dot_git = folder / ".git"
    if not os.path.lexists(dot_git):
        return None
    git_dir = dot_git if dot_git.is_dir() else _pointed_at(dot_git)
    root = place.worktree.resolve()
    if folder.resolve() != root / folder.relative_to(place.worktree) or not git_dir.is_relative_to(root):
        raise WorkspaceError(f"{dot_git} leads elsewhere.")
    refuse_links(git_dir)
    refuse_foreign(git_dir, b"")
    head = read_head(git_dir).sha
    view = place.records / "inside" / sha256(os.fsencode(folder.relative_to(place.worktree))).hexdigest()[:16]
    git = Git(view, folder, {**place.env, "GIT_OPTIONAL_LOCKS": "1"})
    if not (view / "HEAD").exists():
        view.mkdir(mode=0o700, parents=True, exist_ok=True)
        git.init()
        (view / "info").mkdir(exist_ok=True)
        (view / "info" / "attributes").write_text("* -filter !diff\n", encoding="ascii")
    (view / "index.lock").unlink(missing_ok=True)  # left by a git that was killed
    (view / "objects" / "info" / "alternates").write_bytes(os.fsencode(git_dir / "objects") + b"\n")
    git.run("read-tree", "-m", "-i", head)
    return git


def _pointed_at(dot_git: Path) -> Path:
    content = (read_file(dot_git, limit_bytes=4096) or b"").strip()
    if not content.startswith(_POINTER):
        raise WorkspaceError(f"{dot_git} names no repository.")
    return (dot_git.parent / os.fsdecode(content.removeprefix(_POINTER))).resolve()


def _is_newer(path: Path, began: int) -> bool:
    """Return whether a file was changed since `began`, a Unix time; a missing file counts as changed."""
    try:
        return path.lstat().st_ctime >= began
    except FileNotFoundError:
        return True


def _name_of(place: Place, path: Path) -> str:
    return shown_path(os.fsencode(path.relative_to(place.worktree)))
