"""A small disk at a path of a test; without the right to mount the test runs in namespaces of a new process."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from septet.errors import DiskFullError
from septet.system.disk import diagnosed

_WITHIN_SECONDS = 100
_MS_RDONLY, _MS_REMOUNT, _MNT_DETACH = 1, 32, 2
_WITHIN = "SEPTET_TEST_WITHIN_NAMESPACES"
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class SmallDisk:
    path: Path

    def fill(self) -> None:
        with (self.path / "ballast").open("ab", buffering=0) as ballast:
            block = bytes(1 << 16)
            while block:
                try:
                    ballast.write(block)
                except OSError:
                    block = block[: len(block) // 2]

    def free(self) -> None:
        (self.path / "ballast").unlink(missing_ok=True)
        shutil.rmtree(self.path / "many", ignore_errors=True)

    def use_up_inodes(self) -> None:
        (self.path / "many").mkdir()
        for number in range(os.statvfs(self.path).f_favail):
            (self.path / "many" / str(number)).touch()

    def make_read_only(self) -> None:
        _mount(self.path, _MS_REMOUNT | _MS_RDONLY, "")

    def make_writable(self) -> None:
        _mount(self.path, _MS_REMOUNT, "")


@contextmanager
def small_disk(path: Path, *, mib: int = 16, inodes: int = 4000) -> Iterator[SmallDisk]:
    path.mkdir(parents=True, exist_ok=True)
    _mount(path, 0, f"size={mib}m,nr_inodes={inodes}")
    try:
        yield SmallDisk(path)
    finally:
        _LIBC.umount2(os.fsencode(path), _MNT_DETACH)


@cache
def can_mount() -> bool:
    if sys.platform != "linux":
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(Path(folder)):
                return True
        except OSError:
            return False


def runs_elsewhere(test: str, root: Path) -> bool:
    """Run a test as root of its own namespaces, and return whether that was possible."""
    if _WITHIN in os.environ or not _can_unshare():
        return False
    command = ["unshare", "-Urm", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    ended = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, _WITHIN: "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_WITHIN_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return True


def dev_full_is_told() -> None:
    """Check the report of a full device, which is all that can be checked without a mount."""
    with pytest.raises(OSError, match="No space") as refused, Path("/dev/full").open("wb", buffering=0) as device:
        device.write(b"x")
    assert isinstance(diagnosed(refused.value, Path("/")), DiskFullError)


@cache
def _can_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode == 0


def _mount(path: Path, flags: int, options: str) -> None:
    if _LIBC.mount(b"tmpfs", os.fsencode(path), b"tmpfs", flags, options.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))
