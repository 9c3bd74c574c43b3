"""Submodules: whether an origin has the commit that the work uses, and edits that no commit contains."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from fakes.repositories import ALLOW, Origin, git, make_origin

from septet.git.engine.place import Place
from septet.git.engine.remote import Remote
from septet.git.evidence.evidence import look, stage
from septet.git.evidence.submodules import MovedSubmodule, edits_inside, has_commit, moved_submodules, origin_of

LIB: Final = "vendor/lib"
SHA: Final = "1" * 40


@pytest.fixture(scope="module")
def main_origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    """Return an origin with a submodule, whose own origin has two commits; no test changes them."""
    folder = tmp_path_factory.mktemp("origins")
    library, origin = make_origin(folder, "lib.git"), make_origin(folder, "main.git")
    library.push({"lib.py": "1\n"})
    library.push({"lib.py": "2\n"})
    git(origin.checkout, "submodule", "add", "-q", "../lib.git", LIB, env=ALLOW)
    origin.push({"a.txt": "a\n"})
    return origin


@pytest.fixture
def place(main_origin: Origin, open_place: Callable[..., Place]) -> Place:
    return _checked_out(open_place(of=main_origin))


def _checked_out(place: Place) -> Place:
    place.records.mkdir(parents=True, exist_ok=True)
    git(place.worktree, "submodule", "update", "-q", "--init", "--recursive", env=ALLOW)
    return place


def moved(place: Place) -> list[MovedSubmodule]:
    return moved_submodules(place, place.base_sha, stage(place, look(place)).text("write-tree"))


def lost(place: Place) -> list[str]:
    """Return the submodules whose origin does not have their commit."""
    found = []
    for each in moved(place):
        address = origin_of(place, each) if each.url else None
        if address is None or not has_commit(place, Remote(address.url, place.env), each.sha):
            found.append(each.path)
    return found


def _back(place: Place) -> None:
    git(place.worktree / LIB, "checkout", "-q", "HEAD~1")


def _inside(place: Place) -> None:
    git(place.worktree / LIB, "commit", "-q", "--allow-empty", "-m", "inside")


def _committed(place: Place) -> None:
    _inside(place)
    git(place.worktree, "commit", "-q", "-a", "-m", "bump")


def _hidden(place: Place) -> None:
    git(place.worktree, "config", "--file", ".gitmodules", f"submodule.{LIB}.ignore", "all")
    _committed(place)


def _as_if_pushed(place: Place) -> None:
    _inside(place)
    git(place.worktree / LIB, "update-ref", "refs/remotes/origin/main", "HEAD")


def _no_submodule(place: Place) -> None:
    inner = place.worktree / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-q", "--allow-empty", "-m", "nested")
    git(place.worktree, "add", "-A")


def _removed(place: Place) -> None:
    git(place.worktree, "rm", "-q", "-f", LIB)


@pytest.mark.parametrize(
    ("act", "moved_to", "are_lost"),
    [
        (lambda _: None, [], []),
        (_back, [LIB], []),
        (_inside, [LIB], [LIB]),
        (_committed, [LIB], [LIB]),
        (_hidden, [LIB], [LIB]),
        (_as_if_pushed, [LIB], [LIB]),
        (_no_submodule, ["inner"], ["inner"]),
        (_removed, [], []),
    ],
)
def test_a_commit_that_the_origin_has_not_is_told(
    place: Place, act: Callable[[Place], None], moved_to: list[str], are_lost: list[str]
) -> None:
    """A commit that the submodule's origin lacks is found, whatever the submodule's refs and settings are."""
    act(place)
    assert [each.path for each in moved(place)] == moved_to
    assert lost(place) == are_lost
    assert not list(place.records.glob("ask-*"))


def test_a_submodule_that_is_not_checked_out_stays(place: Place) -> None:
    """If a submodule's folder is empty, as in each new workspace, the commit's tree still has the submodule."""
    _take_out(place)
    assert stage(place, look(place)).text("write-tree") == git(place.worktree, "rev-parse", "HEAD^{tree}")


@pytest.mark.parametrize(
    ("origin", "url", "is_known", "asked"),
    [
        ("https://git.example.org/o/r.git", "../lib.git", False, "https://git.example.org/o/lib.git"),
        ("https://git.example.org/o/r", "../../p/lib", False, "https://git.example.org/p/lib"),
        ("https://git.example.org/o/r", "https://git.example.org/p/lib", False, "https://git.example.org/p/lib"),
        ("https://git.example.org/o/r", "https://other.example.org/p/lib", False, None),
        (
            "https://git.example.org/o/r",
            "https://other.example.org/p/lib",
            True,
            "https://other.example.org/p/lib",
        ),
        ("https://git.example.org/o/r", "ssh://git@other.example.org/p/lib", True, None),
        ("https://git.example.org/o/r", "../../../../../etc", False, None),
        ("https://git.example.org/o/r", "/srv/secret", True, None),
        ("git@git.example.org:o/r", "../lib", False, "git@git.example.org:o/lib"),
        ("/srv/git/r.git", "../lib.git", False, "/srv/git/lib.git"),
        ("/srv/git/r.git", "../../state/workspaces/wo-1", False, None),
        ("/srv/git/r.git", "ext::sh -c id", True, None),
        ("/srv/git/r.git", "--upload-pack=id", True, None),
    ],
)
def test_only_the_works_own_host_is_asked(origin: str, url: str, is_known: bool, asked: str | None) -> None:
    """The engine contacts the work's own host, and another host only over https and if the base names it."""
    nowhere = Path("/nowhere")
    place = Place("wo-1", nowhere, nowhere, nowhere, origin, "main", SHA)
    address = origin_of(place, MovedSubmodule(LIB, SHA, url, is_known))
    assert (address.url if address else None) == asked


INNER: Final = "vendor/lib/inner"
LONG_AGO: Final = "2000-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def nested_origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
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
def nested(nested_origin: Origin, open_place: Callable[..., Place]) -> Place:
    return _checked_out(open_place(of=nested_origin))


def _write(nested: Place, *paths: str) -> None:
    for path in paths:
        (nested.worktree / path).parent.mkdir(exist_ok=True)
        (nested.worktree / path).write_text("another\n")


def _edit(*paths: str) -> Callable[[Place], None]:
    return lambda nested: _write(nested, *paths)


def _delete(nested: Place) -> None:
    (nested.worktree / LIB / "lib.py").unlink()


def _stage(nested: Place) -> None:
    _write(nested, f"{LIB}/lib.py")
    git(nested.worktree / LIB, "add", "-A")


def _commit_staged(nested: Place) -> None:
    _stage(nested)
    git(nested.worktree / LIB, "commit", "-q", "-m", "inside")


def _hide(nested: Place) -> None:
    """Edit files and hide the edits from git, as an agent can, by flags, settings and a monitor program."""
    _write(nested, f"{LIB}/lib.py", f"{LIB}/new.py")
    git(nested.worktree / LIB, "update-index", "--assume-unchanged", "lib.py")
    git(nested.worktree / LIB, "config", "status.showUntrackedFiles", "no")
    git(nested.worktree / LIB, "config", "core.fsmonitor", f"touch {nested.worktree.parent}/ran; false")


def _take_out(nested: Place) -> None:
    git(nested.worktree, "submodule", "deinit", "-q", "-f", LIB)


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
        pytest.param(_commit_staged, [], id="committed"),
        pytest.param(_hide, [f"{LIB}/lib.py", f"{LIB}/new.py"], id="hidden"),
        pytest.param(_take_out, [], id="not checked out"),
    ],
)
def test_files_in_submodules_that_no_commit_holds_are_told(
    nested: Place, act: Callable[[Place], None], told: list[str]
) -> None:
    """Changed, new and deleted files in submodules are found, also in nested submodules and despite hiding."""
    act(nested)
    look(nested)
    for _ in range(2):
        found, unknown = edits_inside(nested, LONG_AGO)
        assert (sorted(found), unknown) == (told, [])
    assert not (nested.worktree.parent / "ran").exists()


def test_what_was_there_before_is_not_told(nested: Place) -> None:
    """A file that is older than the given time is no edit; a deleted file has no time and always counts."""
    _write(nested, f"{LIB}/out.o")
    look(nested)
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert edits_inside(nested, later) == ([], [])
    _delete(nested)
    assert edits_inside(nested, later) == ([f"{LIB}/lib.py"], [])


@pytest.mark.parametrize("text", ["gitdir: /etc\n", "gitdir: ../../..\n", "no pointer\n", ""])
def test_a_submodule_that_leads_elsewhere_is_not_looked_into(nested: Place, text: str) -> None:
    """A submodule whose `.git` leads elsewhere is reported as unknown, and nothing outside is read."""
    look(nested)
    (nested.worktree / LIB / ".git").write_text(text)
    found, unknown = edits_inside(nested, LONG_AGO)
    assert found == []
    assert [each.partition(":")[0] for each in unknown] == [LIB]
