"""The paths that a worker's settings show to guests, and the warnings about them."""

import socket
from pathlib import Path

import pytest

from septet.agents.guest.paths import NamedPath, parse_named_paths
from septet.errors import InvalidInputError


def test_paths_are_absolute_or_of_the_home(tmp_path: Path) -> None:
    """A path is absolute or begins with `~`; `:rw` behind it lets guests write."""
    named = parse_named_paths(("~/.cargo", " /opt/tool:rw ", ""), tmp_path)
    assert named == (NamedPath(tmp_path / ".cargo"), NamedPath(Path("/opt/tool"), writable=True))


@pytest.mark.parametrize("text", ["tool", "./tool", "~other/x", "/opt/../etc"])
def test_what_is_no_plain_path_is_refused(text: str, tmp_path: Path) -> None:
    """The error names the variable and the entry."""
    with pytest.raises(InvalidInputError, match="SEPTET_GUEST_PATHS") as caught:
        parse_named_paths((text,), tmp_path)
    assert text in caught.value.message
    assert caught.value.remedy


def test_a_warning_says_what_a_path_opens(tmp_path: Path) -> None:
    """A socket opens its server, a home its keys, and a missing path nothing."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / "caches").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "docker.sock"))
        assert "the whole machine" in NamedPath(tmp_path / "docker.sock").opening(tmp_path)
    assert "~/.ssh" in NamedPath(tmp_path).opening(tmp_path)
    assert "can change" in NamedPath(tmp_path / "caches", writable=True).opening(tmp_path)
    assert "can read" in NamedPath(tmp_path / "caches").opening(tmp_path)
    assert "nothing" in NamedPath(tmp_path / "missing").opening(tmp_path)


@pytest.mark.parametrize("writable", [True, False])
def test_a_warning_names_the_sockets_of_a_folder(writable: bool, tmp_path: Path) -> None:
    """The warning names sockets even in a read-only folder, and ignores files that only have such a name."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "no.sock").touch()
    (folder / "gone.sock").symlink_to("nowhere")
    named = NamedPath(folder, writable)
    assert "socket" not in named.opening(tmp_path)
    for name in ("docker.sock", "a.sock", "b.sock", "c.sock"):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(folder / name))
    opening = named.opening(tmp_path)
    assert "There are sockets in it: a.sock, b.sock, c.sock and others." in opening
    assert "the whole machine" in opening
