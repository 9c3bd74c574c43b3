"""Whether the origin of a submodule has the commit that the work uses; no other host is contacted."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from fakes.repositories import ALLOW, Origin, git, make_origin

from septet.git.engine.place import Place
from septet.git.engine.remote import Remote
from septet.git.evidence.staging import look, stage
from septet.git.evidence.submodules import MovedSubmodule, has_commit, moved_submodules, origin_of

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
    """Return a workspace in which the submodule is checked out."""
    place = open_place(of=main_origin)
    place.records.mkdir(parents=True, exist_ok=True)
    git(place.worktree, "submodule", "update", "-q", "--init", env=ALLOW)
    return place


def moved(place: Place) -> list[MovedSubmodule]:
    """Return the submodules that moved, staged or committed."""
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
