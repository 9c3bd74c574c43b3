"""The proxies of guests: their processes, and their replacement after a kill."""

import asyncio
import shutil
import subprocess
import time
from functools import cache
from typing import Final

from bench.chaos.journal import Life
from bench.chaos.processes import NOBODY, Pid, children_of, command_of, supervisor_of
from septet.agents.supervisor import PROGRAM
from septet.agents.supervisor.recorder import is_recorder

_START_SECONDS: Final = 10.0
_REPLACED_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.02


@cache
def can_confine() -> bool:
    """Return whether bubblewrap starts here with its own network: otherwise guests have no proxy."""
    program = shutil.which("bwrap")
    if program is None:
        return False
    argv = [program, "--unshare-user", "--unshare-net", "--ro-bind", "/", "/", "true"]
    return subprocess.run(argv, capture_output=True, timeout=_START_SECONDS, check=False).returncode == 0


def proxy_of(agent: Pid) -> Pid:
    """Return the proxy of an agent's sandbox, a child of its supervisor; `NOBODY` without a proxy."""
    supervisor = supervisor_of(agent)
    forked = (
        each for each in children_of(supervisor) if PROGRAM in command_of(each) and not is_recorder(each.number)
    )
    return next((each for each in forked if each.lives), NOBODY)


async def is_replaced(life: Life, killed: Pid) -> bool:
    """Return whether a surviving agent gets another proxy in time; an agent that ends needs none."""
    deadline = time.monotonic() + _REPLACED_SECONDS
    while life.pid.lives and supervisor_of(life.pid).lives:
        if proxy_of(life.pid) not in {killed, NOBODY}:
            return True
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(_LOOK_SECONDS)
    return True
