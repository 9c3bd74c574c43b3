"""A host on which the agents of one work order run."""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest
from fakes.agent_programs import agent_program, warm_program
from fakes.processes import living
from fakes.waiting import wait_until

from activities.turns.turn_budget import run_turn
from septet.agents.clis.adapter import Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import ExitRecord
from septet.agents.runs.folders import RUN_VARIABLE, Run
from septet.agents.runs.lease import Lease
from septet.agents.runs.records import RunKey
from septet.agents.turns.follow import TurnProgress
from septet.agents.turns.request import AgentRuntime, TurnRequest
from septet.agents.turns.turn_runs import TurnResult
from septet.contracts.order import Timeouts

T = TypeVar("T")


@dataclass
class Lab:
    """One work order, its worktree, and the reports of its attempts."""

    root: Path
    runtime: AgentRuntime
    program: Path = Path()
    progress: list[TurnProgress] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)

    def agent(self, body: str) -> None:
        self._use(agent_program(self.root / "agent", body))

    def warm_agent(self, body: str) -> None:
        self._use(warm_program(self.root / "agent", body))

    def _use(self, program: str) -> None:
        self.program = Path(program)
        self.runtime = replace(self.runtime, host=replace(self.runtime.host, programs={"scripted": program}))

    def warm_turn(self, number: int, session_id: str | None = None, **more: Any) -> TurnRequest:
        turn = Turn(f"Turn {number}.\n", self.worktree, resume_id=session_id, warm=True, **more)
        return self.request(activity_id=str(number), turn=turn)

    def request(
        self,
        *,
        run_id: str = "run-1",
        activity_id: str = "5",
        turn: Turn | None = None,
        limits: Timeouts | None = None,
    ) -> TurnRequest:
        return TurnRequest(
            key=RunKey("wo-1", run_id, activity_id),
            order_id="wo-1",
            number=5,
            step="implement_plan",
            adapter=adapter_for("scripted"),
            turn=turn or Turn(prompt="Work.\n", worktree=self.worktree),
            limits=limits or Timeouts(),
            runtime=self.runtime,
        )

    async def run_turn(self, request: TurnRequest | None = None) -> TurnResult:
        request = request or self.request()
        lease = Lease.take(self.runtime.runs, request.key, lane=(request.order_id, ""))

        async def come_back() -> None:
            self.returned.append("returned to the checkpoint")

        return await run_turn(request, lease=lease, on_progress=self.progress.append, leave_work=come_back)

    @property
    def worktree(self) -> Path:
        return self.root / "worktree"

    @property
    def journal(self) -> list[str]:
        path = self.root / "journal"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def let_go(self) -> None:
        """Release an agent that waits for `../go`."""
        (self.root / "go").touch()

    async def begun(self, event: str) -> tuple["asyncio.Future[TurnResult]", Run]:
        attempt = asyncio.ensure_future(self.run_turn())
        return attempt, await self.said(event)

    async def said_anew(self, event: str) -> Run:
        self.progress.clear()
        return await self.said(event)

    async def said(self, event: str) -> Run:
        """Wait until an agent has printed an event of this name and its supervisor has signed; return its run."""
        told = await wait_until(lambda: [told for told in self.progress if told.last_event == event])
        await wait_until(lambda: is_signed(told[0].run))
        return told[0].run


async def dropped(attempt: "asyncio.Future[TurnResult]") -> None:
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt


def end_of(run: Run) -> ExitRecord:
    record = run.exit()
    assert record is not None
    return record


def is_signed(run: Run) -> bool:
    return bool(_lock(run))


def supervisor_of(run: Run) -> int:
    return int(_lock(run).split('"supervisor_pid": ')[1].split(",")[0])


def agent_of(run: Run) -> int:
    return int(_lock(run).split('"pid": ')[1].split(",")[0])


def carriers(mark: str) -> list[int]:
    return [process.pid for process in living(lambda process: process.environ().get(RUN_VARIABLE) == mark)]


def naming(path: Path) -> list[int]:
    found = psutil.process_iter(["cmdline"])
    return [process.pid for process in found if any(str(path) in word for word in process.info["cmdline"] or ())]


def mark_of(run: Run) -> str:
    assert run.record is not None
    return run.record.mark


def _lock(run: Run) -> str:
    return (run.folder / "lock").read_text(encoding="utf-8")
