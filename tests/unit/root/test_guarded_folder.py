"""A folder of a guest's files: no path leads out of the folder."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from septet.system.guarded_folder import GuardedFolder


@pytest.fixture
def folder(tmp_path: Path) -> GuardedFolder:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "own").mkdir()
    return GuardedFolder(tmp_path / "own")


def test_plain_files_are_read_and_found(folder: GuardedFolder) -> None:
    """Plain files are read up to a limit and found by patterns, in deep folders too."""
    folder.write("a/b/one.json", b"1")
    folder.write("a/c/two.txt", b"2")
    assert folder.read("a/b/one.json", 1) == b"1"
    assert folder.read("a/b/one.json", 0) is None
    assert folder.read("a/b/none", 9) is None
    assert folder.find("a/*/*.json") == ["a/b/one.json"]
    assert folder.find("a/*") == []
    assert folder.changed_at("a/b/one.json") is not None
    assert folder.changed_at("a") is None
    assert (folder.root / "a/b/one.json").stat().st_mode & 0o777 == 0o600


def _file_link(root: Path) -> str:
    (root / "login").symlink_to(root.parent / "secret")
    return "login"


def _folder_link(root: Path) -> str:
    (root / "sub").symlink_to(root.parent)
    return "sub/secret"


def _hard_link(root: Path) -> str:
    os.link(root.parent / "secret", root / "login")
    return "login"


def _fifo(root: Path) -> str:
    os.mkfifo(root / "login")
    return "login"


@pytest.mark.parametrize("trick", [_file_link, _folder_link, _hard_link, _fifo])
def test_what_is_no_plain_file_of_its_own_is_not_read(trick: Callable[[Path], str], folder: GuardedFolder) -> None:
    """A link to a file or folder and a FIFO are not read."""
    name = trick(folder.root)
    assert folder.read(name, 100) is None
    if trick is not _hard_link:
        assert folder.find(name) == []
        assert folder.changed_at(name) is None


@pytest.mark.parametrize("trick", [_file_link, _folder_link, _hard_link, _fifo])
def test_what_is_written_stays_inside(trick: Callable[[Path], str], folder: GuardedFolder) -> None:
    """A write replaces a link or a FIFO, and the file behind a link does not change."""
    name = trick(folder.root)
    folder.write(name, b"own")
    assert folder.read(name, 100) == b"own"
    assert (folder.root.parent / "secret").read_text() == "secret"


def test_a_file_takes_the_place_of_a_folder(folder: GuardedFolder) -> None:
    """A file replaces a folder of its name, and can be removed again."""
    (folder.root / "login" / "deep").mkdir(parents=True)
    folder.write("login", b"own")
    assert folder.read("login", 100) == b"own"
    folder.remove("login")
    folder.remove("login")
    (folder.root / "login").mkdir()
    folder.remove("login")
    folder.remove("no/folder/login")
    assert not (folder.root / "login").exists()


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_place_to_mount_at_is_no_link(is_folder: bool, folder: GuardedFolder) -> None:
    """A mount point replaces a link in its path, and an existing mount point stays."""
    (folder.root / "way").symlink_to(folder.root.parent / "outside")
    folder.make_place("way/place", is_folder=is_folder)
    (folder.root / "place").symlink_to(folder.root.parent / "secret")
    folder.make_place("place", is_folder=is_folder)
    for path in (folder.root / "way/place", folder.root / "place"):
        assert path.is_dir() if is_folder else path.is_file()
        assert not path.is_symlink()
        number = path.stat().st_ino
        folder.make_place(str(path.relative_to(folder.root)), is_folder=is_folder)
        assert path.stat().st_ino == number
    assert list((folder.root.parent / "outside").iterdir()) == []


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../secret", ""])
def test_a_name_that_leads_out_is_a_mistake_of_the_caller(name: str, folder: GuardedFolder) -> None:
    """A name that leads out of the folder is refused as the caller's mistake."""
    with pytest.raises(ValueError, match="not a name in"):
        folder.read(name, 1)


def test_a_write_that_fails_leaves_nothing(folder: GuardedFolder) -> None:
    """A failed write leaves neither a draft nor a partial file."""
    with pytest.raises(TypeError):
        folder.write("login", "no bytes")  # type: ignore[arg-type]
    assert list(folder.root.iterdir()) == []
