"""The cost history of a project on a real server: each note of a host is reported once, whatever process dies."""

import asyncio
import shutil
import uuid
from pathlib import Path

import pytest
from fakes.running import replayed
from fakes.step_lab import settings_of
from fakes.waiting import wait_until
from temporalio.client import Client
from temporalio.worker import Worker

from clients.temporal.costs import CostClient
from septet.contracts.amounts import Spending
from septet.contracts.costs import CostHistory, CostNote, CostNotes, CostRow, costs_id
from septet.costs.estimate import Question
from workers.registry import parts_of
from workers.watching.reports import CostTeller
from workflows.budgets import Costs

pytestmark = pytest.mark.asyncio(loop_scope="session")


def note(key: str, usd: float, week: str = "2026-W40", project: str = "o/r") -> CostNote:
    return CostNote(
        project=project,
        order_id="wo-1",
        key=key,
        step="build_plan",
        agent="claude",
        use=Spending(usd=usd),
        week=week,
    )


async def test_a_teller_that_dies_loses_nothing_and_counts_nothing_twice(client: Client, tmp_path: Path) -> None:
    """Notes that a dead teller took, or reported but did not remove, are reported again, and each dollar counts once."""
    queue = f"queue-{uuid.uuid4().hex}"
    settings = settings_of(tmp_path, task_queue=queue)
    costs = CostClient(client, queue)
    async with parts_of(settings) as parts, Worker(client, task_queue=queue, workflows=[Costs]):
        notes, teller = parts.host.cost_notes, CostTeller(client, parts.host, gathered_seconds=0.0)
        assert await teller.look() == 0
        notes.note(note("1", 1.0))
        assert await CostTeller(client, parts.host).look() == 0, "it is gathered with others for a while"
        assert len(notes.take()) == 1, "this teller died before it told"
        notes.note(note("2", 2.0, week="2026-W41"))
        assert await teller.look() == 2
        await wait_until(
            lambda: costs.show("project"), lambda shown: shown.total.usd == 3.0
        )  # after the server lists the workflow

        notes.note(note("2", 2.5, week="2026-W41"))
        shutil.copy(notes.root / "2.json", tmp_path / "kept.json")
        await teller.look()
        shutil.copy(
            tmp_path / "kept.json", notes.root / "2.taken"
        )  # this teller died before it removed its reported note
        await asyncio.gather(teller.look(), CostTeller(client, parts.host, gathered_seconds=0.0).look())
        assert [path.name for path in notes.root.iterdir()] == ["lock"]
        shown = await costs.show("week", project="o/r")
        assert [(group.name, group.use.usd) for group in shown.costs] == [("2026-W40", 1.0), ("2026-W41", 2.5)]
        assert (await costs.show("week", since="2026-W41", project="o/r")).total.usd == 2.5
        assert (await costs.show("agent", project="o/nobody")).costs == ()
        estimate = await costs.estimate(Question(project="o/r", agent="claude"))
        assert "No work order with claude has been completed yet" in estimate.text
        await replayed(client.get_workflow_handle(costs_id(queue, "o/r")), "budget/costs")


@pytest.mark.release
async def test_sums_are_of_all_projects(client: Client) -> None:
    """The sums cover all projects, however many: a partial sum would look like the whole."""
    queue, projects = f"queue-{uuid.uuid4().hex}", 201
    costs = CostClient(client, queue)
    async with Worker(client, task_queue=queue, workflows=[Costs]):
        rows = (CostRow(week="2026-W40", step="build_plan", agent="claude", use=Spending(usd=1.0)),)
        for number in range(projects):
            project = f"o/r-{number}"
            history = CostHistory(project=project, rows=rows)
            await client.start_workflow("Costs", history, id=costs_id(queue, project), task_queue=queue)

        async def is_whole() -> bool:
            reply = await costs.show("project")
            return (len(reply.costs), reply.total.usd) == (projects, float(projects))

        assert await wait_until(is_whole)


async def test_a_history_goes_on_in_new_runs(short_runs: Client) -> None:
    """After many messages the workflow continues as new, and keeps its sums."""
    queue = f"queue-{uuid.uuid4().hex}"
    async with Worker(short_runs, task_queue=queue, workflows=[Costs]):
        handle = await short_runs.start_workflow(
            "Costs", CostHistory(project="o/r"), id=costs_id(queue, "o/r"), task_queue=queue
        )
        first = (await handle.describe()).run_id
        whole = short_runs.get_workflow_handle(handle.id)
        notes = [CostNotes(notes=(note(f"{number}", 1.0),)) for number in range(60)]
        await asyncio.gather(*(whole.signal("note", each) for each in notes))
        total = (await CostClient(short_runs, queue).show("project")).total
        assert (total.usd, total.turns) == (60.0, 60)
        assert (await whole.describe()).run_id != first
