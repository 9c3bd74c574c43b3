import os
import signal
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from fakes.lock_holders import held_elsewhere
from fakes.small_disk import small_disk

from septet.errors import HaltedError, LockHeldError
from septet.system.durable import (
    Patience,
    close_after,
    create_file,
    hold_lock,
    lock_is_held,
    remove_lock,
    share_lock,
    take_lock,
    write_atomically,
    write_durably,
    write_first,
)
from septet.system.processes import Halt


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    """A second process gets no lock until the first closes its descriptor, and the lock's file is private."""
    path = tmp_path / "lock"
    assert not lock_is_held(path)
    first = take_lock(path)
    assert first is not None
    assert take_lock(path) is None
    assert lock_is_held(path)
    os.close(first)
    assert not lock_is_held(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_wait_for_a_lock_can_be_halted(tmp_path: Path) -> None:
    """A halt ends the wait for a lock of another thread."""
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


@pytest.fixture
def holder(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with held_elsewhere(tmp_path / "lock") as process:
        yield process


@pytest.mark.needs("Linux")
@pytest.mark.parametrize("hold", [hold_lock, share_lock])
def test_whoever_was_stopped_with_a_lock_in_hand_is_named(
    hold: Callable[..., AbstractContextManager[object]], tmp_path: Path, holder: "subprocess.Popen[bytes]"
) -> None:
    """The wait for a stopped holder ends with an error that names the process and can be retried."""
    holder.send_signal(signal.SIGSTOP)
    named = rf"process {holder.pid} \(.*stopped\)"
    with (
        pytest.raises(LockHeldError, match=named) as held,
        hold(tmp_path / "lock", Patience(600.0, stopped_seconds=0)),
    ):
        pytest.fail("two have the lock")
    assert held.value.retryable
    holder.kill()
    holder.wait(60)
    with hold(tmp_path / "lock"):
        assert take_lock(tmp_path / "lock") is None


def test_whoever_works_with_a_lock_in_hand_is_waited_for_as_long_as_work_lasts(
    tmp_path: Path, holder: "subprocess.Popen[bytes]"
) -> None:
    """The wait for a running holder lasts for the whole patience, and its error names the process."""
    named = f"process {holder.pid} "
    with pytest.raises(LockHeldError, match=named), hold_lock(tmp_path / "lock", Patience(0.6, stopped_seconds=0)):
        pytest.fail("two have the lock")


@contextmanager
def taking(path: Path) -> Iterator[None]:
    while (descriptor := take_lock(path)) is None:
        os.sched_yield()
    with close_after(descriptor):
        yield


@pytest.mark.parametrize("hold", [hold_lock, taking])
def test_a_lock_that_was_removed_has_one_holder_all_the_same(
    hold: Callable[[Path], AbstractContextManager[None]], tmp_path: Path
) -> None:
    """A lock has one holder even if its file is removed again and again while eight threads want the lock."""
    path, inside, most = tmp_path / "lock", [], [0]
    removed, done = threading.Event(), threading.Event()

    def enter(number: int) -> None:
        entered = 0
        while entered < 200 or not (removed.is_set() or done.is_set()):
            with hold(path):
                inside.append(number)
                most[0] = max(most[0], len(inside) if lock_is_held(path) else 2)
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


@pytest.mark.small_disk
def test_a_first_file_that_finds_no_room_leaves_nothing(tmp_path: Path) -> None:
    """A first file on a full disk leaves no draft."""
    with small_disk(tmp_path / "disk") as disk:
        disk.fill()
        with pytest.raises(OSError, match="No space"):
            write_first(disk.path / "file", b"x")
        assert os.listdir(disk.path) == ["ballast"]


@pytest.mark.parametrize("write", [write_atomically, write_durably])
def test_a_file_is_replaced_whole(tmp_path: Path, write: object) -> None:
    """A file is replaced whole and is private to its user; a missing folder causes an error."""
    path = tmp_path / "file"
    path.write_bytes(b"before")
    assert callable(write)
    write(path, b"after")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"after", 0o600)
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "gone" / "file", b"")


def test_the_first_writer_wins(tmp_path: Path) -> None:
    """A second writer leaves the first file unchanged, and no other file."""
    path = tmp_path / "file"
    write_first(path, b"first")
    write_first(path, b"second")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(FileExistsError):
        create_file(path, b"third")
