"""A damaged mirror, and lock files of a killed git."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.repositories import Origin, git

from septet.errors import GitBusyError, GitError
from septet.git.engine.engine import clear_stale_locks
from septet.git.engine.git_words import looks_damaged
from septet.git.engine.place import Place
from septet.git.engine.remote import Remote
from septet.git.vault.vault import prepare
from septet.git.workspace.mirror import mend_mirror, refresh_mirror

Open = Callable[..., Place]


def pack_of(mirror: Path) -> Path:
    git(mirror, "config", "--unset", "extensions.preciousObjects", check=False)
    git(mirror, "repack", "-adq")
    (pack,) = (mirror / "objects" / "pack").glob("*.pack")
    return pack


def truncated_pack(mirror: Path) -> None:
    pack = pack_of(mirror)
    pack.chmod(0o600)
    os.truncate(pack, pack.stat().st_size // 2)


def missing_head(mirror: Path) -> None:
    """Remove HEAD, so that git does not recognise the folder as a repository."""
    (mirror / "HEAD").unlink()


def zeroed_objects(mirror: Path) -> None:
    """Fill every loose object with zeros of the same size, as after a power cut."""
    for path in mirror.glob("objects/??/*"):
        size = path.stat().st_size
        path.chmod(0o600)
        path.write_bytes(bytes(size))


def torn_ref(mirror: Path) -> None:
    (mirror / "packed-refs").unlink(missing_ok=True)
    (mirror / "refs/remotes/origin/main").write_bytes(b"")


def is_object(path: Path) -> bool:
    return "damaged" in path.parts or "objects" in path.parts


DAMAGES = [truncated_pack, missing_head, zeroed_objects, torn_ref]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_mirror_is_mended_where_it_is(
    place: Place, open_place: Open, origin: Origin, damage: Callable[[Path], None]
) -> None:
    """A new workspace repairs the mirror, an older workspace works again, and no object file is lost."""
    damage(place.mirror)
    before = {path.stat().st_ino for path in place.mirror.rglob("*") if path.is_file() and is_object(path)}
    origin.push({"new.txt": "new"})

    other = open_place("wo-2")

    assert git(other.worktree, "show", "HEAD:new.txt") == "new"
    for worktree in (other.worktree, place.worktree):
        assert git(worktree, "log", "--format=%s", "-1") == "change"
        assert "print" in git(worktree, "show", "HEAD:src/app.py")
        git(worktree, "commit", "-q", "--allow-empty", "-m", "works")
    after = {path.stat().st_ino for path in place.mirror.rglob("*") if path.is_file() and is_object(path)}
    assert before <= after


def test_what_the_origin_has_no_more_is_named(place: Place, origin: Origin, env: dict[str, str]) -> None:
    """The error names a commit that neither the mirror nor the origin has, and the worktree stays."""
    truncated_pack(place.mirror)
    git(origin.checkout, "commit", "-q", "--amend", "-m", "another first")
    git(origin.checkout, "push", "-q", "--force", "origin", "main")
    git(origin.bare, "reflog", "expire", "--expire=now", "--all")
    git(origin.bare, "gc", "-q", "--prune=now")
    with pytest.raises(GitError, match=place.base_sha[:12]) as failed:
        mend_mirror(place.mirror, Remote(place.origin, env), place.base_sha)
    assert "rescue list" in failed.value.remedy
    assert (place.worktree / "README.md").exists()


@pytest.mark.parametrize(
    "said",
    [
        "fatal: not a git repository: '/s/mirrors/a.git'",
        "error: file /s/pack-1.pack is far too short to be a packfile",
        "error: inflate: data stream error (incorrect header check)",
        "fatal: bad object refs/remotes/origin/main",
        "fatal: unable to read tree (0123)",
        "error: object file .git/objects/0a/bc is empty",
    ],
)
def test_damage_is_told_by_git_s_words(said: str) -> None:
    """Git's words about damaged files are recognised, and its words about refusals are not."""
    assert looks_damaged(said)
    assert not looks_damaged("fatal: could not read Username for 'https://example.org'")
    assert not looks_damaged("fatal: unable to access 'https://example.org/': Could not resolve host")


def test_a_lock_of_a_dead_git_does_not_stop_the_engine(place: Place, env: dict[str, str]) -> None:
    """The engine removes lock files of a dead git in the mirror and the vault."""
    for folder, names in ((place.mirror, ("packed-refs.lock", "config.lock")), (place.vault, ("config.lock",))):
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).touch()
    (place.mirror / "refs/remotes/origin/main.lock").touch()
    refresh_mirror(place.mirror, Remote(place.origin, env))
    prepare(place)
    assert not list(place.mirror.rglob("*.lock"))
    assert not (place.vault / "config.lock").exists()


def test_a_lock_of_a_living_git_is_respected(place: Place) -> None:
    """The lock file of a running git stays, and the error names the process."""
    dot_git = place.worktree / ".git"
    (dot_git / "index.lock").touch()
    with subprocess.Popen(["git", "hash-object", "--stdin"], cwd=place.worktree, stdin=subprocess.PIPE) as process:
        try:
            with pytest.raises(GitBusyError, match=rf"index\.lock is held: process {process.pid} "):
                clear_stale_locks(dot_git, place.worktree)
        finally:
            process.kill()
    assert (dot_git / "index.lock").exists()
    clear_stale_locks(dot_git, place.worktree)
    assert not (dot_git / "index.lock").exists()


def test_a_lock_that_a_program_has_open_is_respected(place: Place) -> None:
    """The lock file that any program has open stays, and the error names the process."""
    lock = place.worktree / ".git" / "index.lock"
    lock.touch()
    with lock.open() as held:
        process = subprocess.Popen(["sleep", "60"], stdin=held)
    with process:
        try:
            with pytest.raises(GitBusyError, match=str(process.pid)):
                clear_stale_locks(place.worktree / ".git", place.worktree)
        finally:
            process.kill()
    assert lock.exists()
