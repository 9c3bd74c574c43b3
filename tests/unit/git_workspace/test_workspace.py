"""Workspaces: opened once, separate from each other, whole or not at all."""

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fakes.repositories import Origin, git, make_origin

from septet.errors import InvalidInputError, NotFoundError, WorkspaceError
from septet.git.engine.address import parse_address
from septet.git.engine.place import Place, find_place, find_record, record_of
from septet.git.evidence.evidence import gather
from septet.git.workspace.workspace import OrderStart, open_workspace
from septet.state import StateDir

Open = Callable[..., Place]


def test_it_is_no_linked_worktree_and_borrows_its_objects(place: Place) -> None:
    """The workspace has its own `.git`, and copies no object of the mirror."""
    assert (place.worktree / ".git").is_dir()
    assert git(place.worktree, "count-objects", "-v").splitlines()[0] == "count: 0"
    assert list((place.worktree / ".git" / "hooks").glob("*")) == []


def test_it_has_the_branches_and_tags_of_the_origin(open_place: Open, origin: Origin) -> None:
    """The workspace has every branch and tag of the origin."""
    sha = origin.push({"a": "1"}, branch="topic/one")
    git(origin.checkout, "tag", "-a", "v1", "-m", "first", sha)
    git(origin.checkout, "push", "-q", "origin", "v1")

    place = open_place(base="topic/one")

    assert sha == git(place.worktree, "rev-parse", "refs/remotes/origin/topic/one")
    assert git(place.worktree, "describe", "HEAD") == "v1"
    listed = git(place.worktree, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/remotes/origin")
    assert {"HEAD", "main", "topic/one"} == set(listed.split())


def test_names_are_taken_as_they_are(tmp_path: Path, open_place: Open) -> None:
    """Quotes and blanks in the names of repositories and branches do no harm."""
    branch = 'tr"unk'
    origin = make_origin(tmp_path / "odd", name='we"ird \\ $(x).git', default_branch=branch)
    origin.push({"a": "1"})

    place = open_place(of=origin)

    assert branch == git(place.worktree, "branch", "--show-current")
    assert str(origin.bare) == git(place.worktree, "remote", "get-url", "origin")
    assert f"refs/heads/{branch}" == git(place.worktree, "config", f"branch.{branch}.merge")


@pytest.mark.parametrize(("settings", "name"), [("", "Septet"), ("[user]\n\tname = Grace\n", "Grace")])
def test_agents_have_an_identity(open_place: Open, env: dict[str, str], settings: str, name: str) -> None:
    """An agent's commit has the name of the worker's user, or else Septet's, and HOME does not change."""
    configuration = Path(env["HOME"], ".gitconfig")
    configuration.write_text(settings)
    place = open_place()
    git(place.worktree, "commit", "-q", "--allow-empty", "-m", "x", env={"HOME": "/nowhere"}, person=False)

    assert git(place.worktree, "log", "-1", "--format=%an <%ae>") == f"{name} <septet@localhost>"
    assert (os.listdir(configuration.parent), configuration.read_text()) == ([".gitconfig"], settings)


def test_lfs_pointers_stay_pointers(tmp_path: Path, open_place: Open, env: dict[str, str]) -> None:
    """A checkout runs no LFS filter, even if the user's settings name a filter."""
    canary = tmp_path / "canary"
    (Path(env["HOME"]) / ".gitconfig").write_text(
        f'[filter "lfs"]\n\tsmudge = touch {canary}; cat\n\tclean = touch {canary}; cat\n'
        f"\tprocess = touch {canary}\n\trequired = true\n"
    )
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12\n"
    origin = make_origin(tmp_path / "lfs")
    origin.push({".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "big.bin": pointer})

    place = open_place(of=origin)

    assert pointer == (place.worktree / "big.bin").read_text()
    assert gather(place).clean
    assert not canary.exists()


@pytest.mark.parametrize("order_id", ["", ".", "..", "a/b", "a" * 65, "a b", "wo*"])
def test_an_id_that_is_no_folder_name_is_refused(
    state: StateDir, env: dict[str, str], origin: Origin, order_id: str
) -> None:
    """An id that is no plain folder name is refused."""
    with pytest.raises(InvalidInputError, match="id"):
        open_workspace(state, parse_address(str(origin.bare)), OrderStart(order_id, "r"), env=env)


def test_a_half_made_clone_is_made_anew(open_place: Open, state: StateDir, origin: Origin) -> None:
    """An attempt that died before the clone was complete is repeated at the recorded base."""
    first = open_place()
    shutil.rmtree(first.worktree)
    origin.push({"a": "1"})
    half = state.workspaces / "wo-1~new"
    (half / ".git").mkdir(parents=True)
    (half / "README.md").write_text("half")

    again = open_place()

    assert first == again
    assert not half.exists()
    assert gather(again).clean


def test_it_is_opened_once_by_many_at_once(open_place: Open) -> None:
    """Four attempts at the same time end with one clone."""
    with ThreadPoolExecutor(4) as threads:
        places = list(threads.map(lambda _: open_place("wo-7"), range(4)))

    assert len({place.worktree for place in places}) == 1
    assert gather(places[0]).clean


def test_a_folder_of_unknown_origin_is_not_touched(state: StateDir, open_place: Open) -> None:
    """A folder without a record in the place of a workspace is refused and stays."""
    stranger = state.workspaces / "wo-9"
    stranger.mkdir()
    (stranger / "file").write_text("theirs")

    with pytest.raises(WorkspaceError, match="no record says who opened it"):
        open_place("wo-9")

    assert (stranger / "file").read_text() == "theirs"


def test_a_repository_that_is_not_there_leaves_the_id_free(
    state: StateDir, env: dict[str, str], tmp_path: Path, open_place: Open
) -> None:
    """An id stays free if its repository was not found."""
    with pytest.raises(NotFoundError):
        open_workspace(state, parse_address(str(tmp_path / "none")), OrderStart("wo-3", "r"), env=env)

    assert find_record(state, "wo-3") is None
    assert open_place("wo-3").worktree.is_dir()


def test_a_broken_record_is_an_error_with_a_remedy(place: Place, state: StateDir, env: dict[str, str]) -> None:
    """The error for a damaged record names the file."""
    record = json.loads((place.records / "workspace.json").read_text())
    assert "main" == record_of(place).default_branch == record["default_branch"]
    (place.records / "workspace.json").write_text("{")

    with pytest.raises(WorkspaceError, match=r"workspace\.json"):
        find_place(state, "wo-1", env)
