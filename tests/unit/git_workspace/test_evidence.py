"""Evidence: the changes in a worktree, as git reports them."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.repositories import Origin, git

from septet.errors import EvidenceError, GitError
from septet.git.engine.objects import read_base_file, read_base_files
from septet.git.engine.place import Place
from septet.git.evidence.evidence import contains, gather
from septet.git.vault.contents import CLOCK_STEP_NS
from septet.git.vault.survey import OPEN_FOLDER, Survey, look_at
from septet.git.workspace.plan import plan_file
from septet.system.durable import close_after

Open = Callable[..., Place]
Write = Callable[[str, str], None]


@pytest.fixture
def write(place: Place) -> Write:
    def write_it(name: str, text: str) -> None:
        path = place.worktree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return write_it


def test_git_status_runs_again_only_after_a_change(place: Place, write: Write) -> None:
    """While a survey shows no change, the evidence stays without git; a change of the same size is seen."""
    write("new.py", "one")
    without_git = replace(place, env={**place.env, "PATH": "/nowhere"})
    time.sleep(CLOCK_STEP_NS / 1e9)  # a younger file might change with the same time

    seen = gather(place, survey=_survey(place))
    assert gather(without_git, survey=_survey(place)) == seen

    write("src/app.py", "x" * (place.worktree / "src/app.py").stat().st_size)
    with pytest.raises(GitError):
        gather(without_git, survey=_survey(place))
    assert "src/app.py" in {change.path for change in gather(place, survey=_survey(place)).files_changed}


def test_git_status_runs_again_after_new_rules_of_what_is_ignored(place: Place, write: Write) -> None:
    """The private excludes in `.git` count as a change."""
    write("new.py", "one")
    time.sleep(CLOCK_STEP_NS / 1e9)
    assert not gather(place, survey=_survey(place)).clean

    write(".git/info/exclude", "new.py\n")
    assert gather(place, survey=_survey(place)).clean


def _survey(place: Place) -> Survey:
    with close_after(os.open(place.worktree, OPEN_FOLDER)) as root:
        return look_at(root)


def changes(place: Place, since: str | None = None) -> dict[str, str]:
    return {change.path: change.operation for change in gather(place, since).files_changed}


def test_flags_in_the_agents_index_hide_nothing(place: Place, write: Write) -> None:
    """`assume-unchanged` and `skip-worktree` in the agent's index hide no change."""
    git(place.worktree, "update-index", "--assume-unchanged", "README.md")
    git(place.worktree, "update-index", "--skip-worktree", "src/app.py")
    write("README.md", "changed")
    write("src/app.py", "changed")

    assert changes(place) == {"README.md": "modify", "src/app.py": "modify"}


def _broken(index: Path) -> None:
    index.write_bytes(b"DIRC" + b"\0" * 100)


def _missing(index: Path) -> None:
    index.unlink()


def _split(index: Path) -> None:
    git(index.parents[1], "update-index", "--split-index")
    git(index.parents[1], "add", "new.py")


def _refused_path(index: Path) -> None:
    blob = git(index.parents[1], "hash-object", "-w", "--stdin", stdin=b"evil")
    git(index.parents[1], "update-index", "--add", "--cacheinfo", f"100644,{blob},xgit/hooks/pre-commit")
    index.write_bytes(index.read_bytes().replace(b"xgit/hooks", b".git/hooks"))


@pytest.mark.parametrize("spoil", [_broken, _missing, _split, _refused_path])
def test_an_odd_index_of_the_agents_does_no_harm(
    place: Place, write: Write, spoil: Callable[[Path], None]
) -> None:
    """A broken, missing or split index, and an index with a path into `.git`, do not change the evidence."""
    write("new.py", "1")
    spoil(place.worktree / ".git" / "index")
    assert changes(place) == {"new.py": "create"}


def test_a_conflict_without_a_merge_is_named(place: Place, write: Write) -> None:
    """The evidence names the files of a conflict that a stash left in the index."""
    write("README.md", "stashed")
    git(place.worktree, "stash", "-q")
    write("README.md", "other")
    git(place.worktree, "commit", "-q", "-a", "-m", "other")
    git(place.worktree, "stash", "pop", check=False)

    assert "README.md" in gather(place).unfinished
    assert changes(place)["README.md"] == "modify"


@pytest.fixture
def plans(tmp_path: Path) -> Place:
    """Return a place with a plan and odd files; a plan needs no repository."""
    root, secret = tmp_path / "work", tmp_path / "secret.md"
    (root / "specs").mkdir(parents=True)
    (root / ".git").mkdir()
    for path in (secret, root / ".git" / "config", root / "specs" / "plan.md"):
        path.write_text("# Plan")
    (root / "specs" / "empty.md").touch()
    os.mkfifo(root / "specs" / "fifo.md")
    for link, target in {
        "plan.md": "specs/plan.md",
        "specs/loop.md": "loop.md",
        "specs/out.md": str(secret),
        "linked": str(tmp_path),
        "into-git": ".git",
    }.items():
        (root / link).symlink_to(target)
    return Place("wo-1", root, root, root, "", "main", "")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("./specs//plan.md", "specs/plan.md"),
        (" specs/plan.md\n", "specs/plan.md"),
        ("{root}/specs/plan.md", "specs/plan.md"),
        ("plan.md", "plan.md"),
    ],
)
def test_a_plan_is_named_relative_to_the_root(plans: Place, path: str, name: str) -> None:
    """A path to a plan becomes relative to the root, also through a symlink that stays inside the worktree."""
    assert plan_file(plans, path.format(root=plans.worktree)) == name


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("specs/none.md", "no file"),
        ("specs", "not a plain file"),
        ("specs/empty.md", "is empty"),
        ("specs/fifo.md", "not a plain file"),
        ("specs/loop.md", "no file"),
        ("specs/out.md", "outside the worktree"),
        ("linked/secret.md", "outside the worktree"),
        ("into-git/config", "outside the worktree"),
        (".git/config", "does not name a file"),
        ("", "does not name a file"),
        ("../secret.md", "outside"),
        ("/etc/passwd", "outside"),
        ("specs/\0plan.md", "no file"),
        ("x" * 5000, "no file"),
    ],
)
def test_what_is_no_plan_is_refused(plans: Place, path: str, why: str) -> None:
    """A missing or empty file, a folder, a FIFO and a file outside the worktree are refused as plans."""
    with pytest.raises(EvidenceError, match=why):
        plan_file(plans, path)


def test_a_file_is_read_as_of_the_base(place: Place, write: Write, origin: Origin) -> None:
    """A base file has the content of the base commit, whatever an agent or another person writes later."""
    git(place.worktree, "commit", "-q", "--allow-empty", "-m", "x")
    write("README.md", "changed by the agent")
    origin.push({"README.md": "changed by others"})

    assert read_base_file(place, "README.md") == b"# Sample\n"
    assert read_base_file(place, "README.md\nREADME.md") is None
    assert read_base_files(place, ["src", "no ne.md", "README.md", "x missing", "README.md/x"]) == {
        "README.md": b"# Sample\n"
    }


def test_links_in_the_base_are_followed_inside(open_place: Open, origin: Origin) -> None:
    """A symlink in the base commit is followed to another file of the commit, and never out of it."""
    links = {
        "in.md": "../README.md",
        "out.md": "/etc/passwd",
        "loop.md": "loop.md",
        "lost.md": "nowhere/at all.md",
        "below.md": "../README.md/below",
    }
    (origin.checkout / ".septet").mkdir()
    for name, target in links.items():
        (origin.checkout / ".septet" / name).symlink_to(target)
    origin.push({})

    read = read_base_files(open_place(), [*(f".septet/{name}" for name in links), "README.md"])
    assert read == {".septet/in.md": b"# Sample\n", "README.md": b"# Sample\n"}


def test_no_commit_contains_one_that_is_not_there(place: Place) -> None:
    """A commit that an agent invented is in no history."""
    assert not contains(place, place.base_sha, "1" * 40)
