"""The work of a trial: work orders held in every step, pipelines, and triaged work orders on the board."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from fakes.repositories import Origin
from fakes.septet_command import Septet
from temporalio.client import Client, WorkflowExecutionStatus

from septet.contracts.names import Step

STEPS = tuple(Step)
_LOOK_SECONDS = 0.2
_ISSUES = [
    {"id": "a", "title": "Say goodbye too", "body": "The app greets only."},
    {"id": "b", "title": "Greet twice", "body": "Once is not enough.", "depends_on": ["a"]},
]


class StandstillError(Exception):
    """An expected state did not come."""


@dataclass
class Work:
    """Work on one queue; each work order's agent waits in a step until its gate is opened."""

    client: Client
    machine: Septet
    origin: Origin
    queue: str = "septet"
    patience_seconds: float = 300.0
    orders: list[str] = field(default_factory=list)
    pipelines: list[str] = field(default_factory=list)

    async def begin(self, act: str, count: int) -> None:
        """Start work orders, held in each of the steps in turn, and a pipeline; wait until all are held."""
        names = [f"wo-{act}-{number}" for number in range(count)]
        steps = dict(zip(names, islice(cycle(STEPS), len(self.orders), None), strict=False))
        for number, (name, step) in enumerate(steps.items()):
            self.machine.scenario(name, {"steps": {step.value: {"wait_for": str(self._gate(name))}}})
            waits = {"stage": "triaged"} if number % 5 == 0 else {}
            await self._start("WorkOrder", name, {"title": f"Work of {name}", **waits})
        self.orders += names
        pipeline = f"pl-{act}"
        gate = {"steps": {"classify_issue": {"wait_for": str(self._gate(pipeline))}}}
        self.machine.scenario(f"{pipeline}-planner", gate)
        await self._start("Pipeline", pipeline, {"issues": _ISSUES})
        self.pipelines.append(pipeline)
        for name, step in steps.items():
            await self.until(lambda n=name, s=step: self._is_held(n, s), f"{name} in {step.value}")  # type: ignore[misc]

    def open(self, names: Sequence[str]) -> None:
        """Open the gates of work orders and pipelines."""
        for name in names:
            self._gate(name).touch()

    async def in_flight(self) -> int:
        """Return the number of running work orders, by the server."""
        return sum([await self.status(name) is WorkflowExecutionStatus.RUNNING for name in self.orders])

    async def until_closed(self, names: list[str]) -> None:
        """Wait until workflows are closed.

        Raises:
            StandstillError: The patience is over.
        """
        for name in names:
            await self.until(lambda n=name: self._is_closed(n), f"the end of {name}")  # type: ignore[misc]

    async def status(self, name: str) -> WorkflowExecutionStatus | None:
        """Return the status of a workflow."""
        return (await self.client.get_workflow_handle(name).describe()).status

    def starts(self, order: str) -> list[str]:
        """Return the runs of a work order's agents, one for each start."""
        return self.machine.runs(order)

    async def _start(self, kind: str, name: str, order: dict[str, Any]) -> None:
        """Start a workflow as Temporal's command line does, without any release's client."""
        given = {"repository": str(self.origin.bare), **order}
        await self.client.start_workflow(kind, given, id=name, task_queue=self.queue)

    async def _is_closed(self, name: str) -> bool:
        return await self.status(name) is not WorkflowExecutionStatus.RUNNING

    async def _is_held(self, name: str, step: Step) -> bool:
        return (self._runs(name) / f"{step.number}-{step.value}-1" / "run.json").exists()

    async def until(self, look: Callable[[], Awaitable[bool]], what: str) -> None:
        """Poll until `look` returns true.

        Raises:
            StandstillError: The patience is over.
        """
        try:
            async with asyncio.timeout(self.patience_seconds):
                while not await look():  # noqa: ASYNC110 -- other processes change the state
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            raise StandstillError(f"waited {self.patience_seconds:.0f} s in vain for {what}") from None

    def _runs(self, name: str) -> Path:
        return self.machine.state / "runs" / name

    def _gate(self, name: str) -> Path:
        folder = self.machine.root / "gates"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name
