"""A slow disk for a while: strace delays each `fsync` of a process and of its new children."""

import asyncio
import shutil
import signal
import subprocess
from functools import cache
from typing import Final

from bench.chaos.processes import Pid

_DELAY_MICROSECONDS: Final = 300_000
_CALLS: Final = "fsync,fdatasync"
_STOP_SECONDS: Final = 10.0


@cache
def can_slow_disk() -> bool:
    """Return whether strace is installed and may trace."""
    program = shutil.which("strace")
    if program is None:
        return False
    argv = [program, "-f", "-o", "/dev/null", "-e", f"inject={_CALLS}:delay_enter=1", "true"]
    return subprocess.run(argv, capture_output=True, timeout=_STOP_SECONDS, check=False).returncode == 0


async def slow_disk_of(process: Pid, seconds: float) -> None:
    """Delay each `fsync` of a process and of its new children, for this long or until its end."""
    tracer = await asyncio.create_subprocess_exec(
        *("strace", "-f", "-q", "-o", "/dev/null", "-p", str(process.number)),
        *("-e", f"trace={_CALLS}", "-e", f"inject={_CALLS}:delay_enter={_DELAY_MICROSECONDS}"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        await asyncio.wait_for(tracer.wait(), seconds)
    except TimeoutError:
        tracer.send_signal(signal.SIGTERM)  # it detaches from all traced processes
    finally:
        try:
            await asyncio.wait_for(tracer.wait(), _STOP_SECONDS)
        except TimeoutError:
            tracer.kill()  # the kernel then detaches strace from all processes
            await tracer.wait()
