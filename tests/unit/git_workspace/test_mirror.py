"""The host's mirror of a repository."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fakes.repositories import Origin, git, make_origin

from septet.errors import GitError, InvalidInputError, NotFoundError, SeptetError
from septet.git.engine.engine import Git
from septet.git.engine.remote import Remote
from septet.git.workspace.mirror import Base, find_base, refresh_mirror, tidy_mirror


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """Return the path of a mirror that does not exist yet."""
    (tmp_path / "mirrors").mkdir()
    return tmp_path / "mirrors" / "key.git"


@pytest.fixture
def remote(origin: Origin, env: dict[str, str]) -> Remote:
    return Remote(str(origin.bare), env)


@pytest.mark.parametrize("base", ["release/1.0", "refs/heads/release/1.0"])
def test_it_starts_at_a_named_branch(mirror: Path, remote: Remote, origin: Origin, base: str) -> None:
    """A base is the name of one of the origin's branches, with or without `refs/heads/`."""
    sha = origin.push({"a": "1"}, branch="release/1.0")

    assert Base("release/1.0", sha, "main") == refresh_mirror(mirror, remote, base)


@pytest.mark.parametrize("base", ["mian", "HEAD", "v1", "--all", "", "main^"])
def test_a_base_that_is_no_branch_is_refused(mirror: Path, remote: Remote, origin: Origin, base: str) -> None:
    """A base that is no branch is refused, since a pull request needs one; the remedy names existing branches."""
    git(origin.checkout, "tag", "v1")
    git(origin.checkout, "push", "-q", "origin", "v1")

    with pytest.raises(NotFoundError, match="base") as refused:
        refresh_mirror(mirror, remote, base)

    assert "main" in refused.value.remedy


def test_a_branch_makes_room_for_a_folder_of_branches(mirror: Path, remote: Remote, origin: Origin) -> None:
    """After `topic` was deleted, it is no base, `topic/one` can be fetched, and the old commits stay."""
    gone = origin.push({"a": "1"}, branch="topic")
    refresh_mirror(mirror, remote)
    git(origin.bare, "branch", "-D", "topic")
    with pytest.raises(NotFoundError):
        refresh_mirror(mirror, remote, "topic")
    git(origin.checkout, "checkout", "-q", "main")
    git(origin.checkout, "branch", "-D", "topic")
    sha = origin.push({"b": "1"}, branch="topic/one")

    assert sha == refresh_mirror(mirror, remote, "topic/one").sha
    assert git(mirror, "cat-file", "-t", gone) == "commit"


def test_nobody_can_collect_its_objects(mirror: Path, remote: Remote, origin: Origin) -> None:
    """Neither `git gc` nor `git prune` removes an object that a workspace may borrow."""
    sha = origin.push({"a": "1"}, branch="topic")
    refresh_mirror(mirror, remote)
    git(mirror, "update-ref", "-d", "refs/remotes/origin/topic")

    git(mirror, "gc", "--prune=now", check=False)
    git(mirror, "prune", "--expire=now", check=False)

    assert git(mirror, "cat-file", "-t", sha) == "commit"


def test_an_empty_repository_is_refused(mirror: Path, tmp_path: Path, env: dict[str, str]) -> None:
    """A repository without a commit is refused."""
    origin = make_origin(tmp_path / "empty")

    with pytest.raises(InvalidInputError, match="no commit yet") as refused:
        refresh_mirror(mirror, Remote(str(origin.bare), env))

    assert "Commit something" in refused.value.remedy


def test_the_only_branch_is_the_default_where_head_dangles(mirror: Path, origin: Origin, remote: Remote) -> None:
    """The only branch of an origin is its default branch if the origin's HEAD names a missing branch."""
    git(origin.bare, "symbolic-ref", "HEAD", "refs/heads/master")

    assert Base("main", origin.sha("main"), "") == refresh_mirror(mirror, remote)


def test_a_dangling_head_with_many_branches_asks_for_a_base(mirror: Path, origin: Origin, remote: Remote) -> None:
    """An origin with several branches and no valid HEAD causes an error that names `base`."""
    origin.push({"a": "1"}, branch="topic")
    git(origin.bare, "symbolic-ref", "HEAD", "refs/heads/master")

    with pytest.raises(InvalidInputError, match="base"):
        refresh_mirror(mirror, remote)

    assert origin.sha("topic") == refresh_mirror(mirror, remote, "topic").sha


def test_a_checkout_is_an_origin(mirror: Path, origin: Origin, env: dict[str, str]) -> None:
    """A person's checkout can be the origin, and the work starts at its current branch."""
    git(origin.checkout, "checkout", "-q", "-b", "theirs")

    base = refresh_mirror(mirror, Remote(str(origin.checkout), env))

    assert Base("theirs", origin.sha("main"), "theirs") == base


def test_a_sha256_repository_is_refused(mirror: Path, tmp_path: Path, env: dict[str, str]) -> None:
    """A repository with SHA-256 ids is refused, and the error says so."""
    git(tmp_path, "init", "-q", "--object-format=sha256", "-b", "main", "new")
    git(tmp_path / "new", "commit", "-q", "--allow-empty", "-m", "first")

    with pytest.raises((InvalidInputError, GitError), match=r"(?i)sha-?256|object format|algorithm"):
        refresh_mirror(mirror, Remote(str(tmp_path / "new"), env))


def followed(refused: SeptetError, env: dict[str, str], folder: Path) -> None:
    """Run the command of the remedy in another folder, as a person would."""
    command = re.findall("`([^`]+)`", refused.remedy)[0]
    subprocess.run(["/bin/sh", "-c", command], check=True, cwd=folder, env=env)


def test_a_shallow_origin_is_refused_with_a_remedy_that_works(
    mirror: Path, origin: Origin, tmp_path: Path, env: dict[str, str]
) -> None:
    """A shallow clone is refused as an origin, and the remedy's command makes the clone usable."""
    origin.push({"a": "1"})
    shallow = tmp_path / "a shallow one"
    git(tmp_path, "clone", "-q", "--depth=1", origin.bare.as_uri(), str(shallow))

    with pytest.raises(InvalidInputError, match="is a shallow clone"):
        refresh_mirror(mirror, Remote(str(shallow), env))
    with pytest.raises(InvalidInputError, match="is a shallow clone") as refused:
        find_base(shallow / ".git", env)
    followed(refused.value, env, tmp_path)

    assert refresh_mirror(mirror, Remote(str(shallow), env)) == find_base(shallow / ".git", env)


def test_a_repository_of_somebody_else_is_refused_with_a_remedy_that_works(
    mirror: Path, origin: Origin, tmp_path: Path, env: dict[str, str]
) -> None:
    """The remedy's command names the folder that git checks, and makes another user's repository usable.

    Since 2.48 git fetches from a repository of another user; such a git refuses nothing here.
    """
    foreign = {**env, "GIT_TEST_ASSUME_DIFFERENT_OWNER": "true"}
    checkout = origin.checkout.rename(tmp_path / "it's theirs")

    if Git(checkout / ".git", env=foreign).try_run("ls-remote", str(checkout)).exit_code != 0:
        with pytest.raises(GitError, match="belongs to another user") as refused:
            refresh_mirror(mirror, Remote(str(checkout), foreign))
        followed(refused.value, foreign, tmp_path)

    assert refresh_mirror(mirror, Remote(str(checkout), foreign)).branch == "main"


def test_a_form_that_git_does_not_know_is_told(mirror: Path, origin: Origin, env: dict[str, str]) -> None:
    """An origin with an extension that git does not know is refused, and the remedy recommends a newer git."""
    git(origin.bare, "config", "core.repositoryFormatVersion", "1")
    git(origin.bare, "config", "extensions.unheardOf", "true")

    with pytest.raises(GitError, match="a form that this machine's git does not know") as refused:
        refresh_mirror(mirror, Remote(str(origin.bare), env))
    assert "newer git" in refused.value.remedy


def test_repositories_of_the_engine_have_one_form(mirror: Path, origin: Origin, env: dict[str, str]) -> None:
    """The engine's repositories have SHA-1 ids, refs in files and a known branch, whatever git's defaults are."""
    other = {**env, "GIT_DEFAULT_HASH": "sha256", "GIT_DEFAULT_REF_FORMAT": "reftable"}
    git(origin.checkout, "config", "--global", "init.defaultBranch", "other", env={"HOME": env["HOME"]})

    assert refresh_mirror(mirror, Remote(str(origin.bare), other)).sha == origin.sha("main")
    assert (mirror / "HEAD").read_text() == "ref: refs/heads/main\n"
    shown = Git(mirror, env=other).text("-c", "alias.shown=!env", "shown").splitlines()
    assert {"GIT_DEFAULT_HASH=sha1", "GIT_DEFAULT_REF_FORMAT=files"} <= set(shown)


def test_what_a_dead_attempt_began_is_begun_again(mirror: Path, remote: Remote, origin: Origin) -> None:
    """A mirror that was unfinished when the worker died is made again."""
    unfinished = mirror.with_suffix(".new")
    (unfinished / "objects").mkdir(parents=True)

    assert origin.sha("main") == refresh_mirror(mirror, remote).sha
    assert not unfinished.exists()


def test_many_at_once_share_one_mirror(mirror: Path, remote: Remote, origin: Origin) -> None:
    """Six refreshes at the same time share one mirror and find the same base."""
    with ThreadPoolExecutor(6) as threads:
        bases = list(threads.map(lambda _: refresh_mirror(mirror, remote), range(6)))

    assert {origin.sha("main")} == {base.sha for base in bases}
    git(mirror, "fsck", "--connectivity-only")


def _loose(mirror: Path) -> int:
    return int(git(mirror, "count-objects").partition(" ")[0])


def _fetch_often(origin: Origin, mirror: Path, remote: Remote) -> list[str]:
    """Push and fetch four branches with thirty files each, and rewrite one more branch; return all commits."""
    commits = []
    for number in range(4):
        files = {f"{number}-{name}.txt": f"{number} {name}\n" for name in range(30)}
        commits.append(origin.push(files, branch=f"work-{number}"))
        git(origin.checkout, "push", "--quiet", "--force", "origin", "HEAD:rewritten")
        refresh_mirror(mirror, remote)
        git(origin.checkout, "checkout", "--quiet", "main")
    return commits


@pytest.mark.law
def test_loose_objects_of_a_mirror_are_packed_and_none_is_lost(
    mirror: Path, remote: Remote, origin: Origin, env: dict[str, str], tmp_path: Path
) -> None:
    """The loose objects become one pack; a borrower finds each object meanwhile, even one without a branch."""
    commits = _fetch_often(origin, mirror, remote)
    left = git(origin.checkout, "commit-tree", "-p", commits[0], "-m", "left", f"{commits[0]}^{{tree}}")
    git(origin.checkout, "push", "--quiet", "--force", "origin", f"{left}:refs/heads/rewritten")
    refresh_mirror(mirror, remote)
    git(origin.checkout, "push", "--quiet", "--force", "origin", "main:rewritten")
    refresh_mirror(mirror, remote)
    borrower = tmp_path / "borrower"
    git(tmp_path, "clone", "--quiet", "--shared", "--no-checkout", str(mirror), str(borrower))
    assert _loose(mirror) > 100

    with ThreadPoolExecutor(2) as pool:
        looks = [pool.submit(git, borrower, "rev-list", "--objects", "--quiet", each) for each in commits * 5]
        tidy_mirror(mirror, tmp_path / "scratch", env)
        for look in looks:
            look.result()

    assert _loose(mirror) == 0
    assert len(list((mirror / "objects/pack").glob("*.pack"))) == 1
    assert list((tmp_path / "scratch").iterdir()) == []
    for commit in (*commits, left):
        git(borrower, "rev-list", "--objects", "--quiet", commit)
    git(mirror, "fsck", "--connectivity-only")
    assert "preciousObjects" in (mirror / "config").read_text()
    assert Base("main", origin.sha("main"), "main") == refresh_mirror(mirror, remote)
    assert git(mirror, "rev-parse", "refs/remotes/origin/work-3") == commits[3]
