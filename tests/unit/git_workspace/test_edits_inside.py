"""Edits in the worktrees of submodules, which no commit of the repository contains."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from fakes.repositories import ALLOW, Origin, git, make_origin

from septet.git.engine.place import Place
from septet.git.evidence.staging import look
from septet.git.evidence.submodules import edits_inside

LIB, INNER = "vendor/lib", "vendor/lib/inner"
LONG_AGO: Final = "2000-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def main_origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    """Return an origin with a submodule and a submodule in the submodule; no test changes them."""
    folder = tmp_path_factory.mktemp("origins")
    inner, library, origin = (make_origin(folder, f"{name}.git") for name in ("inner", "lib", "main"))
    inner.push({"inner.py": "1\n"})
    git(library.checkout, "submodule", "add", "-q", "../inner.git", "inner", env=ALLOW)
    library.push({"lib.py": "1\n", ".gitignore": "build/\n"})
    git(origin.checkout, "submodule", "add", "-q", "../lib.git", LIB, env=ALLOW)
    origin.push({"a.txt": "a\n"})
    return origin


@pytest.fixture
def place(main_origin: Origin, open_place: Callable[..., Place]) -> Place:
    """Return a workspace in which both submodules are checked out."""
    place = open_place(of=main_origin)
    place.records.mkdir(parents=True, exist_ok=True)
    git(place.worktree, "submodule", "update", "-q", "--init", "--recursive", env=ALLOW)
    return place


def _write(place: Place, *paths: str) -> None:
    for path in paths:
        (place.worktree / path).parent.mkdir(exist_ok=True)
        (place.worktree / path).write_text("another\n")


def _edit(*paths: str) -> Callable[[Place], None]:
    return lambda place: _write(place, *paths)


def _delete(place: Place) -> None:
    (place.worktree / LIB / "lib.py").unlink()


def _stage(place: Place) -> None:
    _write(place, f"{LIB}/lib.py")
    git(place.worktree / LIB, "add", "-A")


def _commit(place: Place) -> None:
    _stage(place)
    git(place.worktree / LIB, "commit", "-q", "-m", "inside")


def _hide(place: Place) -> None:
    """Edit files and hide the edits from git, as an agent can, by flags, settings and a monitor program."""
    _write(place, f"{LIB}/lib.py", f"{LIB}/new.py")
    git(place.worktree / LIB, "update-index", "--assume-unchanged", "lib.py")
    git(place.worktree / LIB, "config", "status.showUntrackedFiles", "no")
    git(place.worktree / LIB, "config", "core.fsmonitor", f"touch {place.worktree.parent}/ran; false")


def _take_out(place: Place) -> None:
    git(place.worktree, "submodule", "deinit", "-q", "-f", LIB)


@pytest.mark.parametrize(
    ("act", "told"),
    [
        pytest.param(lambda _: None, [], id="untouched"),
        pytest.param(_edit("a.txt"), [], id="outside"),
        pytest.param(_edit(f"{LIB}/lib.py"), [f"{LIB}/lib.py"], id="changed"),
        pytest.param(
            _edit(f"{LIB}/new.py", f"{LIB}/sub/new.py"), [f"{LIB}/new.py", f"{LIB}/sub/new.py"], id="new"
        ),
        pytest.param(
            _edit(f"{INNER}/inner.py", f"{INNER}/new.py"),
            [f"{INNER}/inner.py", f"{INNER}/new.py"],
            id="in a nested one",
        ),
        pytest.param(_edit(f"{LIB}/build/out.o"), [], id="ignored"),
        pytest.param(_delete, [f"{LIB}/lib.py"], id="gone"),
        pytest.param(_stage, [f"{LIB}/lib.py"], id="staged"),
        pytest.param(_commit, [], id="committed"),
        pytest.param(_hide, [f"{LIB}/lib.py", f"{LIB}/new.py"], id="hidden"),
        pytest.param(_take_out, [], id="not checked out"),
    ],
)
def test_files_in_submodules_that_no_commit_holds_are_told(
    place: Place, act: Callable[[Place], None], told: list[str]
) -> None:
    """Changed, new and deleted files in submodules are found, also in nested submodules and despite hiding."""
    act(place)
    look(place)
    for _ in range(2):
        found, unknown = edits_inside(place, LONG_AGO)
        assert (sorted(found), unknown) == (told, [])
    assert not (place.worktree.parent / "ran").exists()


def test_what_was_there_before_is_not_told(place: Place) -> None:
    """A file that is older than the given time is no edit; a deleted file has no time and always counts."""
    _write(place, f"{LIB}/out.o")
    look(place)
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert edits_inside(place, later) == ([], [])
    _delete(place)
    assert edits_inside(place, later) == ([f"{LIB}/lib.py"], [])


@pytest.mark.parametrize("text", ["gitdir: /etc\n", "gitdir: ../../..\n", "no pointer\n", ""])
def test_a_submodule_that_leads_elsewhere_is_not_looked_into(place: Place, text: str) -> None:
    """A submodule whose `.git` leads elsewhere is reported as unknown, and nothing outside is read."""
    look(place)
    (place.worktree / LIB / ".git").write_text(text)
    found, unknown = edits_inside(place, LONG_AGO)
    assert found == []
    assert [each.partition(":")[0] for each in unknown] == [LIB]
