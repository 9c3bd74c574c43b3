"""No program of an agent in a worktree or its `.git` runs when the engine reads, commits or pushes."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.repositories import ALLOW, Origin, git, make_origin
from fakes.shell_programs import write_program
from fakes.snapshots import begin, snapshot_of

from septet.errors import EvidenceError, SeptetError, WorkspaceError
from septet.git.commits.branches import branch_refusal, create_branch
from septet.git.commits.commit import commit_all
from septet.git.commits.push import push
from septet.git.commits.rework_tree import merge_trees
from septet.git.engine.objects import read_base_file
from septet.git.engine.place import Place
from septet.git.evidence.difference import difference
from septet.git.evidence.evidence import gather, keeps
from septet.git.snapshots.scan import scan
from septet.git.vault.survey import Survey
from septet.git.workspace.plan import plan_file

Open = Callable[..., Place]
LIMIT = 1_000_000
SECONDS = 60
"""The seconds that a test with a pipe may take; git itself would wait twice as long."""


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """Return a file that exists only after a program of the agent ran."""
    return tmp_path / "canary"


@pytest.fixture
def program(tmp_path: Path, canary: Path) -> Path:
    """Return a program of the agent, which also works as a filter."""
    return write_program(tmp_path / "program", f"#!/bin/sh\necho \"$0 $*\" >> '{canary}'\nexec cat\n")


def poison(place: Place, program: Path) -> None:
    """Write every setting with which git runs a program into the worktree's own configuration."""
    dot_git = place.worktree / ".git"
    hooks = dot_git / "hooks"
    for name in _HOOKS:
        write_program(hooks / name, program.read_text())
    included = dot_git / "included"
    included.write_text(f'[filter "evil2"]\n\tclean = {program}\n\tsmudge = {program}\n')
    with (dot_git / "config").open("a") as config:
        config.write(_CONFIG.format(program=program, hooks=hooks, included=included))
    (place.worktree / ".gitattributes").write_text(
        "*.py filter=evil diff=evil merge=evil\n*.md filter=evil2 diff=evil\n*.bin filter=lfs\n"
    )
    (dot_git / "info").mkdir(exist_ok=True)
    (dot_git / "info" / "attributes").write_text("* filter=evil diff=evil\n")


_HOOKS = ("pre-commit", "commit-msg", "post-commit", "pre-push", "post-index-change", "reference-transaction")
_CONFIG = """
[core]
\tfsmonitor = {program}
\tfsmonitorHookVersion = 2
\thooksPath = {hooks}
\tsshCommand = {program}
\tgitProxy = {program}
\taskPass = {program}
\teditor = {program}
\tpager = {program}
\talternateRefsCommand = {program}
\tworktree = /
\trepositoryformatversion = 1
[extensions]
\tpartialClone = evil
[remote "evil"]
\turl = {hooks}
\tuploadpack = {program}
\tpromisor = true
[remote "origin"]
\treceivepack = {program}
\tuploadpack = {program}
[filter "evil"]
\tclean = {program}
\tsmudge = {program}
\tprocess = {program}
\trequired = true
[filter "lfs"]
\tclean = {program}
\tprocess = {program}
\trequired = true
[diff]
\texternal = {program}
[diff "evil"]
\tcommand = {program}
\ttextconv = {program}
[merge "evil"]
\tdriver = {program}
[gpg]
\tprogram = {program}
[commit]
\tgpgSign = true
[credential]
\thelper = !{program}
[alias]
\tstatus = !{program}
\tcommit-tree = !{program}
[pager]
\tstatus = {program}
[sequence]
\teditor = {program}
[url "ext::{program}"]
\tinsteadOf = /
[include]
\tpath = {included}
"""


def work(place: Place) -> None:
    (place.worktree / "README.md").write_text("changed\n")
    (place.worktree / "src" / "app.py").rename(place.worktree / "src" / "moved.py")
    (place.worktree / "new.py").write_text("x = 1\n")
    (place.worktree / "big.bin").write_bytes(b"\0\1" * 100)


def test_a_poisoned_config_runs_nothing(
    place: Place, origin: Origin, program: Path, canary: Path, tmp_path: Path
) -> None:
    """From the evidence to the push no filter, hook, monitor, helper or transport of the agent runs."""
    poison(place, program)
    work(place)

    assert {"new.py": "create", "src/moved.py": "rename"}.items() <= {
        change.path: change.operation for change in gather(place).files_changed
    }.items()
    assert difference(place, limit_bytes=LIMIT).files
    assert plan_file(place, "new.py") == "new.py"
    assert read_base_file(place, "README.md") == b"# Sample\n"
    assert branch_refusal(place, "feat/x") is None
    create_branch(place, "feat/x")
    sha = commit_all(place, "work")
    assert keeps(place, place.base_sha)
    assert gather(place).clean
    push(place, "feat/x", sha)

    assert sha == origin.sha("feat/x")
    assert not canary.exists()
    assert git(origin.bare, "show", "feat/x:new.py") == "x = 1"
    assert git(origin.bare, "show", "feat/x:README.md") == "changed"
    assert git(origin.bare, "show", "feat/x:big.bin").encode() == b"\0\1" * 100
    assert git(origin.bare, "log", "-1", "--format=%cn", "feat/x") == "Septet"
    # The agent's own git runs the program, so the trap is real.
    git(place.worktree, "status", env={"GIT_DIR": str(place.worktree / ".git")}, check=False)
    assert canary.exists()


def test_a_poisoned_submodule_runs_nothing(open_place: Open, tmp_path: Path, program: Path, canary: Path) -> None:
    """The engine runs no program of a submodule's own settings, and git by itself would run the program."""
    library = make_origin(tmp_path / "library")
    library.push({"lib.py": "1"})
    main = make_origin(tmp_path / "main")
    main.push({"a": "1"})
    git(main.checkout, "submodule", "add", "-q", str(library.bare), "lib", env=ALLOW)
    main.push({})
    place = open_place(of=main)
    git(place.worktree, "submodule", "update", "-q", "--init", env=ALLOW)
    module = place.worktree / ".git" / "modules" / "lib"
    with (module / "config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = {program}\n[filter "evil"]\n\tclean = {program}\n')
    (place.worktree / "lib" / ".gitattributes").write_text("* filter=evil\n")
    (place.worktree / "lib" / "lib.py").write_text("2")
    with (place.worktree / ".gitmodules").open("a") as modules:
        modules.write("\tignore = none\n")

    gather(place)
    create_branch(place, "feat/x")
    push(place, "feat/x", commit_all(place, "work"))
    with (place.worktree / ".gitmodules").open("a") as modules:
        modules.write("\tupdate = !touch x\n")
    with pytest.raises(
        EvidenceError, match="gitmodulesUpdate"
    ):  # no git that clones the branch would run the command
        push(place, "feat/y", commit_all(place, "more"))

    assert not canary.exists()
    git(place.worktree / "lib", "status")
    assert canary.exists()


def test_a_poisoned_nested_repository_runs_nothing(place: Place, program: Path, canary: Path) -> None:
    """The engine runs no program of a repository inside the worktree, and lists the repository as left out."""
    nested = place.worktree / "src" / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    (nested / "a").write_text("1")
    git(nested, "add", "a")
    git(nested, "commit", "-q", "-m", "x")
    with (nested / ".git" / "config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = {program}\n")
    git(nested.parent, "init", "-q")  # a folder with tracked files becomes a repository too

    evidence = gather(place)
    assert difference(place, limit_bytes=LIMIT).files == ()
    create_branch(place, "feat/x")
    commit_all(place, "work")

    assert evidence.left_out == ("src/nested",)
    assert not canary.exists()


def test_replacements_and_grafts_do_not_change_what_is_seen(place: Place, origin: Origin) -> None:
    """A replacement of a commit changes neither the evidence nor the pushed commit."""
    (place.worktree / "new.py").write_text("1")
    create_branch(place, "feat/x")
    sha = commit_all(place, "work")
    git(place.worktree, "replace", sha, place.base_sha)

    assert {"new.py"} == {change.path for change in gather(place).files_changed}
    push(place, "feat/x", sha)

    assert git(origin.bare, "show", "feat/x:new.py") == "1"


def test_nothing_is_written_through_links_of_the_agents(place: Place, tmp_path: Path) -> None:
    """`refs/heads` as a link out of the repository is refused, and nothing is written through the link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (place.worktree / "new.py").write_text("1")
    heads = place.worktree / ".git" / "refs" / "heads"
    heads.rename(tmp_path / "heads")
    heads.symlink_to(outside)

    with pytest.raises(SeptetError, match="points outside"):
        create_branch(place, "feat/x")
    with pytest.raises(SeptetError, match="points outside"):
        commit_all(place, "work")

    assert os.listdir(outside) == []


def test_the_agents_index_is_replaced_and_not_written_through(place: Place, tmp_path: Path) -> None:
    """An index that is a link is replaced, and the file behind the link does not change."""
    target = tmp_path / "target"
    target.write_text("theirs")
    (place.worktree / ".git" / "index").unlink()
    (place.worktree / ".git" / "index").symlink_to(target)
    (place.worktree / ".git" / "index.septet").symlink_to(target)
    (place.worktree / "new.py").write_text("1")

    commit_all(place, "work")

    assert target.read_text() == "theirs"
    assert git(place.worktree, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "name",
    [
        ".gitignore",
        "src/.gitignore",
        "src/.gitattributes",
        ".gitmodules",
        "lib/.git/HEAD",
        "lib/.git/refs/heads/main",
        ".git/modules/lib/commondir",
        f"{'/'.join(['long' * 62] * 16)}/.gitignore",
    ],
    ids=lambda name: name[-26:],
)
def test_git_waits_for_no_pipe(place: Place, name: str) -> None:
    """A pipe in the place of a file that git opens is refused at once, and a snapshot is still possible."""
    begin(place)
    _make_pipe(place.worktree, Path(name))
    began = time.monotonic()
    looks: tuple[Callable[[], object], ...] = (
        lambda: gather(place),
        lambda: gather(place, survey=_survey(place)),
        lambda: commit_all(place, "work"),
        lambda: difference(place, limit_bytes=LIMIT),
        lambda: merge_trees(place, place.base_sha),
    )
    for look in looks:
        with pytest.raises(WorkspaceError, match="is a pipe"):
            look()
    snapshot_of(place, "rescue")
    assert time.monotonic() - began < SECONDS


def test_a_pipe_ignores_nothing(place: Place) -> None:
    """A `.gitignore` that is a pipe excludes no file from a snapshot; another `.gitignore` still counts."""
    begin(place)
    for folder in ("src", "other"):
        (place.worktree / folder).mkdir(exist_ok=True)
        (place.worktree / folder / "debug.out").write_text("kept")
    (place.worktree / "src" / ".gitignore").write_text("*.out\n")
    _make_pipe(place.worktree, Path("other/.gitignore"))
    snapshot = snapshot_of(place, "rescue", 0)
    assert [left.path for left in snapshot.left_out] == ["other/.gitignore", "src/debug.out"]


@pytest.mark.parametrize("name", ["pipe", "src/pipe", ".git/pipe"])
def test_a_pipe_that_git_does_not_open_is_left_alone(place: Place, name: str) -> None:
    """A pipe that git does not open does not stop the evidence."""
    begin(place)
    _make_pipe(place.worktree, Path(name))
    assert gather(place).clean
    assert gather(place, survey=_survey(place)).clean


def _survey(place: Place) -> Survey:
    return scan(place, ignored_limit_bytes=LIMIT).survey


def _make_pipe(root: Path, path: Path) -> None:
    """Make a pipe and its folders, even if the whole path is longer than the system's limit."""
    with contextlib.chdir(root):
        for folder in path.parts[:-1]:
            Path(folder).mkdir(exist_ok=True)
            os.chdir(folder)
        Path(path.name).unlink(missing_ok=True)
        os.mkfifo(path.name)
