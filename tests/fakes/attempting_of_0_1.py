"""A worker's process of release 0.1 that carries out one turn by a runner, in a process that is kept where it can be.

`python attempting_of_0_1.py ROOT PROGRAM RUNNER NUMBER [SESSION]`, with that release on `PYTHONPATH`, prints the text
and the session of the outcome, and how it was recovered, as JSON.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from septet.agents.adapter import Host, Turn
from septet.agents.follow import Pace
from septet.agents.ladder import carry_out
from septet.agents.launch import Means, Request
from septet.agents.lease import Lease
from septet.agents.registry import adapter_for
from septet.agents.runs import RunKey, Runs
from septet.agents.supervisors import Supervisors
from septet.contracts.limits import Timeouts


async def attempt(root: Path, program: str, runner: Path, number: str, session_id: str | None = None) -> None:
    """Carry the turn out."""
    means = Means(
        runs=Runs(root / "runs", runner / "lock"),
        supervisors=Supervisors(runner=runner),
        host=Host(env={"PATH": os.environ["PATH"], "HOME": str(root)}, programs={"scripted": program}),
        pace=Pace(look_seconds=0.02),
    )
    request = Request(
        key=RunKey("wo-1", "run-1", number),
        order_id="wo-1",
        number=5,
        step="implement_plan",
        adapter=adapter_for("scripted"),
        turn=Turn(f"Turn {number}.\n", root / "worktree", resume_id=session_id, warm=True),
        limits=Timeouts(),
        means=means,
    )

    async def no_return() -> None:
        raise AssertionError

    lease = Lease.take(means.runs, request.key)
    carried = await carry_out(request, lease=lease, on_progress=lambda _: None, before_rerun=no_return)
    print(json.dumps([carried.outcome.text, carried.outcome.session_id, carried.recovered_by]))  # noqa: T201 -- it is a program that prints


if __name__ == "__main__":
    asyncio.run(attempt(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), *sys.argv[4:6]))
