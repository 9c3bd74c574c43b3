"""A pipeline at the worst moments: it never hangs, loses no message, and reports nothing untrue."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from fakes.pipeline_line import line_of, state_of, statuses, until_issue
from fakes.running import failure_of
from fakes.short_pipeline import ShortPipeline
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError, CancelledError

from clients.temporal.pipelines import PipelineClient
from septet.contracts.names import Status, Step
from septet.contracts.pipeline import IssueCall, PipelineCall, PipelineInput, PipelineIssue
from septet.contracts.pipeline_view import IssueStatus, PipelineStatus, PipelineView
from septet.contracts.task import TaskError
from septet.state import StateDir
from workflows.pipeline import Pipeline
from workflows.work_order import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANN = PipelineCall(who="ann")


def after(name: str, *before: str) -> dict[str, object]:
    """Return an issue that depends on others."""
    return {"id": name, "title": name, "body": "Do it.", "depends_on": list(before)}


async def test_a_failure_dooms_a_whole_chain_of_issues(client: Client) -> None:
    """Indirect dependants of a failed issue are skipped too, planned or not, each with its reason."""
    async with line_of(client) as line:
        line.fails["a", Step.IMPLEMENT_PLAN] = 2
        working = line.hold("a", Step.IMPLEMENT_PLAN)
        handle = await line.start("a", after("b", "a"), after("c", "b"))
        await until_issue(handle, "c", IssueStatus.PLANNED)
        working.set()
        view = await handle.result()
        assert statuses(view) == ["failed", "skipped", "skipped"]
        errors = [issue.error.message for issue in view.issues[1:] if issue.error]
        assert errors == [
            "it depends on issue a, which is failed.", "it depends on issue b, which is skipped.",
        ]  # fmt: skip


async def test_a_planned_issue_is_skipped_with_what_depends_on_it(client: Client) -> None:
    """The update answers, the view shows both issues as skipped at once, and the pipeline continues without them."""
    async with line_of(client) as line:
        working = line.hold("x", Step.IMPLEMENT_PLAN)
        handle = await line.start("x", after("a"), after("b", "a"))
        await until_issue(handle, "b", IssueStatus.PLANNED)
        told = await handle.execute_update(Pipeline.skip, IssueCall(issue_id="a"))
        assert statuses(told) == ["skipped"]
        assert statuses(await handle.query(Pipeline.pipeline)) == ["executing", "skipped", "skipped"]
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(Pipeline.skip, IssueCall(issue_id="b"))
        working.set()
        assert statuses(await handle.result()) == ["completed", "skipped", "skipped"]


@pytest.mark.parametrize("word", ["stop", "skip"])
async def test_a_word_that_comes_as_a_run_only_waits_for_its_notes_counts(client: Client, word: str) -> None:
    """The next run starts no work order for an issue that was stopped or skipped while this run wrote its last note."""
    async with line_of(client, ShortPipeline) as line:
        ending = line.hold("n1", Step.CREATE_PULL_REQUEST)
        handle = await line.start("n0", "n1", "n2", after("last", "n2"))
        await until_issue(handle, "n0", IssueStatus.COMPLETED)
        await line.until("n1:create_pull_request")
        line.noting = asyncio.Event()
        ending.set()
        await until_issue(handle, "n1", IssueStatus.COMPLETED)
        if word == "stop":
            await handle.execute_update(Pipeline.stop, ANN)
        else:
            await handle.execute_update(Pipeline.skip, IssueCall(issue_id="n2", who="ann"))
        line.noting.set()
        view = await handle.result()
        assert view.status is (PipelineStatus.STOPPED if word == "stop" else PipelineStatus.COMPLETED)
        assert statuses(view) == ["completed", "completed", "skipped", "skipped"]
        assert "n2:classify_issue" not in line.events


@pytest.mark.parametrize("word", ["stop", "cancel"])
async def test_a_word_that_comes_as_the_forge_is_asked_counts(client: Client, word: str) -> None:
    """A stop during the reading ends the pipeline as stopped, all skipped; a cancel ends it as cancelled, not failed."""
    async with line_of(client) as line:
        line.reading = asyncio.Event()
        line.read = {"1": PipelineIssue(id="1", title="One")}
        handle = await line.start(1)
        await line.until("reading")
        if word == "stop":
            await handle.execute_update(Pipeline.stop, ANN)
            line.reading.set()
            view = await handle.result()
            assert (view.status, statuses(view)) == (PipelineStatus.STOPPED, ["skipped"])
            assert (
                line.reports[-1].issues == view.issues
            )  # no host surely has the notes: any host may have taken them
        else:
            await handle.cancel()
            failure = await failure_of(handle)
            assert isinstance(failure, CancelledError)
            assert line.reports[-1].status is PipelineStatus.CANCELLED


async def test_a_cancel_counts_whatever_it_meets(client: Client) -> None:
    """A cancel that arrives while lanes are assigned is not lost among signals."""
    async with line_of(client) as line:
        line.hold("a", Step.CLASSIFY_ISSUE)
        handles = []
        for number in range(12):
            handle = await line.start("a", "b")
            async for event in handle.fetch_history_events(wait_new_event=True):
                if event.HasField("workflow_execution_signaled_event_attributes"):
                    break
            await asyncio.sleep(number / 1000)  # vary the moment within the assignment
            await handle.cancel()
            handles.append(handle)
        for handle in handles:
            failure = await failure_of(handle)
            assert isinstance(failure, CancelledError)


async def test_a_cancel_that_comes_as_the_report_is_written_keeps_no_agent_alive(client: Client) -> None:
    """The lanes are closed, the report is written once, and the pipeline is completed."""
    async with line_of(client) as line:
        line.writing = asyncio.Event()
        handle = await line.start("a")
        await line.until("writing")
        await handle.cancel()
        line.writing.set()
        assert statuses(await handle.result()) == ["completed"]
        assert len(line.closed) == 1
        assert len(line.reports) == 1


async def test_a_work_order_of_a_pipeline_cannot_be_moved_into_its_lane(client: Client) -> None:
    """Only the pipeline starts its work orders: the move is refused, and the work order gets its turn."""
    async with line_of(client) as line:
        working = line.hold("a", Step.CLASSIFY_ISSUE)
        handle = await line.start("a", "b")
        await line.until("a:classify_issue")
        order = client.get_workflow_handle(f"{handle.id}-b")
        with pytest.raises(WorkflowUpdateFailedError) as refusal:
            await order.execute_update("move", {"to": "executing"})
        assert "starts when its pipeline starts it" in str(refusal.value.cause)
        working.set()
        assert statuses(await handle.result()) == ["completed", "completed"]


async def test_plans_that_wait_for_another_issue_do_not_keep_it_from_being_planned(client: Client) -> None:
    """An issue that was held back gets planned although the limit of waiting plans is reached by its dependants."""
    async with line_of(client) as line:
        planning = line.hold("x", Step.CLASSIFY_ISSUE)
        handle = await line.start("x", "a", after("b", "a"), after("c", "a"), plans_ahead=2)
        await line.until("x:classify_issue")
        order = client.get_workflow_handle(f"{handle.id}-a")
        await order.execute_update("move", {"to": "collected"})
        planning.set()
        await until_issue(handle, "c", IssueStatus.PLANNED)
        await until_issue(handle, "x", IssueStatus.COMPLETED)
        await order.execute_update("move", {"to": "triaged"})
        assert statuses(await handle.result()) == ["completed"] * 4


async def test_what_a_cancelled_work_order_has_done_is_told(client: Client) -> None:
    """The pipeline's view has the cancelled work order's commit and branch, although it ended without a result."""
    async with line_of(client) as line:
        line.hold("a", Step.CREATE_PULL_REQUEST)
        handle = await line.start("a", "b")
        await line.until("a:create_pull_request")
        await client.get_workflow_handle(f"{handle.id}-a").cancel()
        issue = state_of(await handle.result(), "a")
        assert issue.status is IssueStatus.CANCELLED
        assert (issue.commit_hash, issue.branch_name) == ("c0ffee", "bug-issue-1-wo-1-fix")
        assert issue.rescue is not None


async def test_the_report_is_given_what_its_host_has_not_noted(client: Client) -> None:
    """The report carries the issues that the disk refused before, and none that the disk has."""
    async with line_of(client, ShortPipeline) as line:
        line.unnoted.add("n1")
        view = await (await line.start(*[f"n{number}" for number in range(5)])).result()
        (report,) = line.reports
        assert "n1" in {issue.issue_id for issue in report.issues}
        assert "n4" not in {issue.issue_id for issue in report.issues}
        assert line.on_disk() == {issue.issue_id: issue for issue in view.issues}


async def test_a_failure_with_details_that_are_not_ours_is_told_all_the_same(client: Client) -> None:
    """The workflow task does not fail forever on unreadable details: the pipeline fails with the message."""
    async with line_of(client) as line:
        line.refusal = ApplicationError("the forge is on fire", {"unknown": 1}, non_retryable=True)
        handle = await line.start(1)
        failure = await failure_of(handle)
        assert "the forge is on fire" in str(failure)


async def test_an_issue_that_a_person_holds_back_does_not_keep_later_ones_waiting(client: Client) -> None:
    """When the other issues of its run are done, later issues begin; after a move back the issue gets its turn."""
    async with line_of(client, ShortPipeline) as line:
        planning = line.hold("n0", Step.CLASSIFY_ISSUE)
        handle = await line.start("n0", "n1", "n2", after("last", "n1"))
        await line.until("n0:classify_issue")
        order = client.get_workflow_handle(f"{handle.id}-n1")
        await order.execute_update("move", {"to": "collected"})
        planning.set()
        await until_issue(handle, "n2", IssueStatus.COMPLETED)
        assert "n1:classify_issue" not in line.events
        await order.execute_update("move", {"to": "triaged"})
        assert statuses(await handle.result()) == ["completed"] * 4


async def test_an_issue_whose_work_orders_id_is_taken_says_so(client: Client) -> None:
    """The pipeline `a` with the issue `b-1` and the pipeline `a-b` with the issue `1` mean the same work order."""
    async with line_of(client) as line:
        first = await line.start("b-1")
        await first.result()
        second: WorkflowHandle[Any, PipelineView] = await client.start_workflow(
            "Pipeline",
            {"repository": "/app", "issues": [{"id": name, "title": name, "body": ""} for name in ("1", "2")]},
            id=f"{first.id}-b",
            task_queue=line.doubles.task_queue,
            result_type=PipelineView,
        )
        view = await second.result()
        assert statuses(view) == ["failed", "completed"]
        assert view.issues[0].error == TaskError(
            type="AlreadyRunning",
            message=f"The id is taken: work order {first.id}-b-1 existed before this pipeline.",
            remedy="Put the issue into a pipeline with another id: its work order is named `<pipeline>-<issue>`.",
        )
        other = await client.get_workflow_handle(f"{first.id}-b-1").query(WorkOrder.work_order)
        assert other.status is Status.COMPLETED


async def test_a_cancel_that_nobody_carries_out_is_only_asked_for(client: Client, tmp_path: Path) -> None:
    """Without a worker, the answer and later views name the command that starts a worker."""
    pipelines = PipelineClient(client, f"queue-{uuid.uuid4().hex}", state=StateDir(tmp_path))
    issue = PipelineIssue(id="a", title="Totals", body="Do it.")
    started = (await pipelines.start(PipelineInput(repository="/app", issues=(issue,)))).pipeline
    cancelled = (await pipelines.cancel(started.id, "ann")).pipeline
    assert cancelled.status is PipelineStatus.RUNNING
    assert cancelled.stuck == (
        "The cancel is asked for, and is carried out as soon as a worker runs. "
        "No worker runs, so no further step begins. Start one: septet worker"
    )
    assert (await pipelines.show(started.id)).pipeline.stuck == cancelled.stuck
    await client.get_workflow_handle(started.id).terminate()
