"""A worker's process that makes one attempt: `python attempting.py ROOT PROGRAM`."""

import asyncio
import os
import sys
from pathlib import Path

from fakes.agent_lab import Lab

from septet.agents.clis.adapter import Machine
from septet.agents.runs.folders import Runs
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.follow import Pace
from septet.agents.turns.request import AgentRuntime


async def attempt(root: Path, program: str) -> None:
    host = Machine(env=dict(os.environ), programs={"scripted": program})
    lab = Lab(root, AgentRuntime(Runs(root / "runs"), Supervisors(), host, pace=Pace(poll_seconds=0.02)))
    attempt, _ = await lab.begun("system/init")
    print("living", flush=True)  # noqa: T201 -- it is a program that prints
    await attempt


if __name__ == "__main__":
    asyncio.run(attempt(Path(sys.argv[1]), sys.argv[2]))
