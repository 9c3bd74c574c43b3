"""A worker's process that makes one attempt: `python attempting.py ROOT PROGRAM RUN_ID ACTIVITY_ID`."""

import asyncio
import os
import sys
from pathlib import Path

from activities.turns.turn_budget import run_turn
from septet.agents.clis.adapter import Machine, Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.runs.folders import Runs
from septet.agents.runs.lease import Lease
from septet.agents.runs.records import RunKey
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.follow import Pace, TurnProgress
from septet.agents.turns.request import AgentRuntime, TurnRequest
from septet.contracts.order import Timeouts


async def attempt(root: Path, program: str, run_id: str, activity_id: str) -> None:
    runtime = AgentRuntime(
        runs=Runs(root / "runs"),
        supervisors=Supervisors(),
        host=Machine(env=dict(os.environ), programs={"scripted": program}),
        pace=Pace(poll_seconds=0.02),
    )
    request = TurnRequest(
        key=RunKey("wo-1", run_id, activity_id),
        order_id="wo-1",
        number=5,
        step="implement_plan",
        adapter=adapter_for("scripted"),
        turn=Turn(prompt="Work.\n", worktree=root / "worktree"),
        limits=Timeouts(),
        runtime=runtime,
    )
    said: list[TurnProgress] = []

    def follow(progress: TurnProgress) -> None:
        if progress.session_id is not None and not said:
            said.append(progress)
            print("living", progress.run.folder, flush=True)  # noqa: T201 -- it is a program that prints

    async def no_return() -> None:
        print("returned", flush=True)  # noqa: T201 -- as above

    lease = Lease.take(runtime.runs, request.key)
    carried = await run_turn(request, lease=lease, on_progress=follow, leave_work=no_return)
    print("ended", carried.outcome.ended, carried.recovered_by, flush=True)  # noqa: T201 -- as above


if __name__ == "__main__":
    asyncio.run(attempt(Path(sys.argv[1]), *sys.argv[2:5]))
