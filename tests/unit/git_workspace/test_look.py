"""The evidence equals the changes that a person's `git add --all` would commit, submodules included."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from fakes.repositories import ALLOW, git, git_env, make_origin
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from septet.contracts.facts import FileChange
from septet.git.commits.commit import commit_all
from septet.git.engine.address import parse_address
from septet.git.engine.place import Place
from septet.git.evidence.evidence import gather, look, stage
from septet.git.workspace.workspace import OrderStart, open_workspace
from septet.git.worktree.view import file_changes, read_name_status
from septet.state import StateDir

Edit = Callable[[Path], object]

LIB: Final = "vendor/lib"


def _write(name: str, content: str) -> Edit:
    def write(tree: Path) -> None:
        path = tree / name
        if path.is_dir():
            shutil.rmtree(path)
        for above in reversed(path.relative_to(tree).parents):
            if (tree / above).is_file() or (tree / above).is_symlink():
                (tree / above).unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    return write


def _remove(name: str) -> Edit:
    def remove(tree: Path) -> None:
        path = tree / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            with suppress(FileNotFoundError, NotADirectoryError):  # a file may be in the place of the folder
                path.unlink()

    return remove


def _move(old: str, new: str) -> Edit:
    def move(tree: Path) -> None:
        into_itself = (tree / new).is_relative_to(tree / old)
        if not into_itself and (tree / old).exists() and not (tree / new).exists():
            with suppress(FileNotFoundError, NotADirectoryError):  # the target's folder may be missing
                (tree / old).rename(tree / new)

    return move


def _link(name: str, target: str) -> Edit:
    def link(tree: Path) -> None:
        (tree / name).unlink()
        (tree / name).symlink_to(target)

    return link


def _mode(name: str, bits: int) -> Edit:
    def change(tree: Path) -> None:
        if (tree / name).exists():
            (tree / name).chmod(bits)

    return change


def _git(*arguments: str, inside: str = "") -> Edit:
    """Run git, inside a submodule only if the submodule is checked out; a refusal of git is fine."""

    def run(tree: Path) -> None:
        if not inside or (tree / inside / ".git").exists():
            git(tree / inside, *arguments, env=ALLOW, check=False)

    return run


def _nested(name: str) -> Edit:
    def make(tree: Path) -> None:
        _write(f"{name}/file", "nested\n")(tree)
        git(tree / name, "init", "-q")
        git(tree / name, "add", "-A")
        git(tree / name, "commit", "-q", "-m", "nested", check=False)

    return make


NAMES: Final = ("README.md", "src/app.py", "src/b", "src", "new", "new/a b*", "dist/x", "x.log", ":(top)odd", "é")
RULES: Final = (".gitignore", ".gitattributes", "src/.gitignore")
BUMP: Final = _git("submodule", "update", "-q", "--init", "--remote")
ADD: Final = _git("add", "-A")
COMMIT_INSIDE: Final = _git("commit", "-q", "--allow-empty", "-m", "inside", inside=LIB)

EDITS: Final = st.one_of(
    st.builds(_write, st.sampled_from(NAMES), st.sampled_from(["", "one\n", "two\r\n"])),
    st.builds(_write, st.sampled_from(RULES), st.sampled_from(["", "*.log\n", "new\n", "*.md text eol=crlf\n"])),
    st.builds(_remove, st.sampled_from((*NAMES, *RULES, LIB, ".gitmodules"))),
    st.builds(_move, st.sampled_from((*NAMES, LIB)), st.sampled_from(NAMES)),
    st.builds(_mode, st.sampled_from(NAMES[:4]), st.sampled_from([0o700, 0o755])),
    st.sampled_from(
        [
            BUMP,
            COMMIT_INSIDE,
            _git("submodule", "update", "-q", "--init"),
            _git("config", "--file", ".gitmodules", "submodule.vendor/lib.ignore", "all"),
            _git("checkout", "-q", "HEAD~1", inside=LIB),
            _write(f"{LIB}/lib.py", "dirty\n"),
            _write(f"{LIB}/new.py", "untracked\n"),
            _git("add", LIB),
            _git("rm", "-q", "-f", LIB),
            _git("mv", LIB, "lib2"),
            _git("status"),
            ADD,
            _git("add", "-f", "x.log"),
            _git("reset", "-q"),
            _git("rm", "-q", "--cached", "README.md"),
            _git("commit", "-q", "-m", "work"),
            _git("checkout", "-q", "--", "."),
            _git("stash", "-q", "-u"),
            _write(".git/info/exclude", "new\n"),
            _nested("inner"),
        ]
    ),
)


@dataclass(frozen=True)
class Truth:
    """The tree and changes that plain git would commit."""

    tree: str
    files_changed: tuple[FileChange, ...]
    nested: tuple[str, ...]
    """The repositories that `git add` would make gitlinks and that are no submodules."""


def _truth(place: Place) -> Truth:
    """Add everything with plain git, in a separate index."""
    tree, index = place.worktree, place.worktree / ".git" / "index.test"
    env = {"GIT_INDEX_FILE": str(index)}
    shutil.copyfile(tree / ".git" / "index", index)
    known = set(_gitlinks(git(tree, "ls-files", "-s", "-z", env=env)))
    known |= set(_gitlinks(git(tree, "ls-tree", "-r", "-z", "HEAD")))
    git(tree, "-c", "submodule.vendor/lib.ignore=none", "add", "-A", env=env)
    if LIB in known and (tree / LIB / ".git").exists():  # since 2.54 git follows .gitmodules except with --force
        git(tree, "add", "--force", "--", LIB, env=env)
    nested = sorted(set(_gitlinks(git(tree, "ls-files", "-s", "-z", env=env))) - known)
    if nested:
        git(tree, "rm", "-q", "-f", "--cached", "--", *nested, env=env)
    written = git(tree, "write-tree", env=env)
    diff = ("diff-tree", "-r", "-z", "-M", "--name-status", "--ignore-submodules=none", place.base_sha, written)
    changes = file_changes(read_name_status(os.fsencode(git(tree, *diff))))
    index.unlink()
    return Truth(written, changes, tuple(nested))


def _gitlinks(listing: str) -> list[str]:
    return [line.partition("\t")[2] for line in listing.split("\0") if line.startswith("160000 ")]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Place]:
    """Return a function that opens workspaces of a repository whose submodule has a newer commit."""
    root = tmp_path_factory.mktemp("looks")
    library = make_origin(root / "library")
    library.push({"lib.py": "1\n"})
    origin = make_origin(root / "origins")
    origin.push({"README.md": "# Sample\n", "src/app.py": "print('hello')\n", ".gitignore": "*.log\ndist/\n"})
    git(origin.checkout, "submodule", "add", "-q", str(library.bare), LIB, env=ALLOW)
    origin.push({})
    library.push({"lib.py": "2\n"})
    state, address, numbers = StateDir(root / "state"), parse_address(str(origin.bare)), iter(range(10_000))
    state.prepare()

    def open_it() -> Place:
        name = f"wo-{next(numbers)}"
        place = open_workspace(state, address, OrderStart(name, name), env=git_env(root / "home"))
        git(place.worktree, "checkout", "-q", "-b", "feat-1")
        return place

    return open_it


CASES: Final[dict[str, list[list[Edit]]]] = {
    "files are written, and another one is in the place of a folder": [
        [_write("specs/plan.md", "# Plan"), _write("README.md", "# Other\n"), _write("debug.log", "ignored")],
        [_remove("src/app.py"), _write("src/app.py/now/a/folder", "x"), _remove("README.md")],
    ],
    "a file moves": [[_move("src/app.py", "src/main.py")], [ADD], [_remove("src/main.py")]],
    "a mode and a type": [[_mode("README.md", 0o755), _link("src/app.py", "/etc/passwd")]],
    "what is staged is not what is there": [
        [_write("new.py", "1"), _write("gone.py", "1"), _write("README.md", "staged"), ADD],
        [_remove("gone.py"), _write("README.md", "# Sample\n")],
    ],
    "an ignored file is added by force, and one that is tracked is taken out": [
        [_write("dist/app.js", "1"), _write("dist/other.js", "1"), _git("add", "-f", "dist/app.js")],
        [_write(".gitignore", "*.log\ndist/\nsrc/\n"), _git("rm", "-q", "--cached", "-r", "src")],
    ],
    "names of any bytes": [
        [_write(name, "1") for name in ("new\nline", os.fsdecode(b"\xff\xfe"), "-rf", ":(top)x")]
    ],
    "line endings": [
        [_write(".gitattributes", "*.txt text=auto\n*.crlf text eol=crlf\n*.raw -text\n"), _write("a.txt", "1\n")],
        [_write("b.crlf", "1\r\n2\r\n"), ADD, _git("commit", "-q", "-m", "work")],
        [_write("a.txt", "1\r\n"), _write("c.raw", "3\r\n"), _write("d.txt", "2\r\n")],
    ],
    "what a CLI hides": [[_write(".git/info/exclude", ".npmrc\n"), _write(".npmrc", ""), _write("new.py", "1")]],
}
"""The edits of agents, step after step."""


def _cases(test: Callable[..., None]) -> Callable[..., None]:
    for steps in CASES.values():
        test = example(steps=steps)(test)
    return test


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.lists(EDITS, max_size=4), min_size=1, max_size=3))
@_cases
@example(steps=[[], [BUMP, _write("new", "two\n")]])
@example(steps=[[BUMP], [_write("README.md", "two\n"), ADD]])
@example(steps=[[_write("README.md", "two\n"), BUMP, _git("commit", "-qam", "done")]])
@example(
    steps=[[BUMP, _write(".gitmodules", '[submodule "x"]\n\tpath = vendor/lib\n\turl = x\n\tignore = all\n')]]
)
@example(
    steps=[
        [
            BUMP,
            _git("config", "--file", ".gitmodules", "submodule.vendor/lib.ignore", "all"),
            _git("commit", "-qam", "x"),
        ]
    ]
)
@example(
    steps=[[_git("submodule", "update", "-q", "--init"), COMMIT_INSIDE, _nested("inner"), _remove("README.md")]]
)
def test_a_look_tells_what_plain_git_would_commit(opened: Callable[[], Place], steps: list[list[Edit]]) -> None:
    """After each step of an agent's edits the evidence, the staged tree and the commit equal plain git's."""
    place = opened()
    truth = _truth(place)
    for edits in steps:
        for edit in edits:
            edit(place.worktree)
        truth, evidence = _truth(place), gather(place)
        assert evidence.files_changed == truth.files_changed
        assert evidence.left_out == truth.nested
        assert stage(place, look(place)).text("write-tree") == truth.tree
    sha = commit_all(place, "feat: all of it")
    assert git(place.worktree, "rev-parse", f"{sha}^{{tree}}") == truth.tree
