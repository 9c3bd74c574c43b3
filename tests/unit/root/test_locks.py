import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from septet.errors import HaltedError
from septet.system.durable import create_file, write_atomically, write_durably, write_first
from septet.system.locks import hold_lock, lock_is_held, remove_lock, take_lock
from septet.system.processes import Halt


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    """Who comes second gets none, and the lock is free again when its descriptor is closed; its file is private."""
    path = tmp_path / "lock"
    assert not lock_is_held(path)
    first = take_lock(path)
    assert first is not None
    assert take_lock(path) is None
    assert lock_is_held(path)
    os.close(first)
    assert not lock_is_held(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_lock_is_held_for_a_block(tmp_path: Path) -> None:
    """Within the block it is held, and not after it."""
    path = tmp_path / "below" / "lock"
    with hold_lock(path):
        assert lock_is_held(path)
    assert not lock_is_held(path)


def test_a_wait_for_a_lock_can_be_halted(tmp_path: Path) -> None:
    """Work that was cancelled does not wait for whoever keeps a lock, such as a fetch that hangs."""
    path, halt, begun = tmp_path / "lock", Halt(), threading.Event()

    def wait() -> None:
        with halt.over():
            begun.set()
            with hold_lock(path):
                pass

    held = take_lock(path)
    assert held is not None
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(wait)
        begun.wait()
        halt.now()
        with pytest.raises(HaltedError):
            waiting.result(30)
    os.close(held)


def test_a_lock_that_nobody_holds_can_be_removed(tmp_path: Path) -> None:
    """One that is held stays, and so does one that is not there; the next who wants it makes it anew."""
    path = tmp_path / "lock"
    assert not remove_lock(path)
    with hold_lock(path):
        assert not remove_lock(path)
        assert path.exists()
    assert remove_lock(path)
    assert not path.exists()
    with hold_lock(path):
        assert lock_is_held(path)


def test_a_lock_that_was_removed_has_one_holder_all_the_same(tmp_path: Path) -> None:
    """However often the file is removed while many wait for it, no two are in the block at once."""
    path, inside, most = tmp_path / "lock", [], [0]
    removed, done = threading.Event(), threading.Event()

    def enter(number: int) -> None:
        entered = 0
        while entered < 50 or not (removed.is_set() or done.is_set()):
            with hold_lock(path):
                inside.append(number)
                most[0] = max(most[0], len(inside))
                inside.remove(number)
            entered += 1

    def remove() -> None:
        while not done.is_set():
            if remove_lock(path):
                removed.set()

    with ThreadPoolExecutor(9) as threads:
        removing = threads.submit(remove)
        entering = [threads.submit(enter, number) for number in range(8)]
        try:
            assert removed.wait(60)
            for each in entering:
                each.result(60)
        finally:
            done.set()
        removing.result(60)
    assert most == [1]


@pytest.mark.parametrize("write", [write_atomically, write_durably])
def test_a_file_is_replaced_whole(tmp_path: Path, write: object) -> None:
    """The new content is there for this user alone, and nothing beside it; a folder that is gone is an error."""
    path = tmp_path / "file"
    path.write_bytes(b"before")
    assert callable(write)
    write(path, b"after")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"after", 0o600)
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "gone" / "file", b"")


def test_the_first_writer_wins(tmp_path: Path) -> None:
    """A second one leaves the file as it is, and nothing beside it."""
    path = tmp_path / "file"
    write_first(path, b"first")
    write_first(path, b"second")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(FileExistsError):
        create_file(path, b"third")
