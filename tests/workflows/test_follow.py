"""The rounds on a pull request in its workflow: each event counts once, rounds are bounded, and a person ends them."""

import uuid
from functools import partial
from operator import eq
from typing import Any

import pytest
from fakes.activities import Doubles, done, ended
from fakes.lost_hosts import given_up
from fakes.running import replayed, result_of, until, watched, works_until_cancelled
from fakes.waiting import wait_until
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError

from clients.executions.messages import has_taken
from clients.page.standing import need_of
from clients.temporal.decisions import OrderDecisions
from clients.temporal.deliveries import Deliveries
from clients.temporal.work_orders import WorkOrders
from septet.contracts.amounts import BudgetWait
from septet.contracts.decisions import RetryCall
from septet.contracts.facts import KeyFinding
from septet.contracts.forge_events import PullRequestTouched
from septet.contracts.names import Stage, Status, Step, Verdict, watched_order
from septet.contracts.pull_request_watch import PullRequestNews
from septet.contracts.rework import FollowTerms, ReworkEvent
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import NOTIFIES, Task
from septet.contracts.workspace import LIVENESS, PULL_REQUESTS, OpenWorkspace, Workspace
from septet.errors import RefusedTransitionError
from workflows.pull_request.pull_request import PullRequestWorkflow

pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "file:///origin.git/pull/1"
SPENT = BudgetWait(
    scope="order/wo-1",
    step="rework",
    limit="2usd",
    message="The budget of the rounds on the pull request is used up: 2.00 of 2.00 USD.",
    remedy="Raise it with `septet budget raise order/wo-1 5usd --step rework`.",
)


def doubles_with(terms: FollowTerms, *more: str, **where: Any) -> Doubles:
    """Return doubles whose workspace allows followed pull requests; its host serves `more`, and has the fields `where`."""
    made = Doubles(task_queue=f"queue-{uuid.uuid4().hex}")

    def opened(asked: OpenWorkspace) -> Workspace:
        update = {"serves": (PULL_REQUESTS, *more), "follow": terms, **where}
        return made.workspace(asked).model_copy(update=update)

    made.open_workspace = opened
    return made


async def tell(watch: WorkflowHandle[Any, Any], *event_ids: str) -> None:
    """Report events to the watch, as a host does."""
    events = tuple(ReworkEvent(id=each, kind="checks", title=f"title of {each}") for each in event_ids)
    await watch.signal(PullRequestWorkflow.looked, PullRequestNews(url=URL, state="open", events=events))


async def until_round(watch: WorkflowHandle[Any, Any], state: str, number: int) -> Task:
    def stands(task: Task) -> bool:
        return task.rework is not None and (task.rework.state, task.rework.round) == (state, number)

    return await until(watch, stands)


def calls_of(doubles: Doubles, name: str) -> list[StepCall]:
    return [call for activity, call in doubles.calls if activity == name]


async def test_an_event_is_answered_once_in_the_implementors_session(client: Client) -> None:
    """A repeated event starts nothing; the next round continues the session of the last round from its checkpoint."""
    doubles = doubles_with(FollowTerms())
    async with watched(client, doubles, "pull_request/followed", follow_pr=True) as watch:
        await tell(watch, "checks:1")
        task = await until_round(watch, "waiting", 1)
        assert (task.stage, task.status, task.commit_sha) == (Stage.REVIEW, "completed", "badc0de")
        await tell(watch, "checks:1")
        await tell(watch, "checks:1", "checks:2")
        await until_round(watch, "waiting", 2)
        await watch.signal(PullRequestWorkflow.looked, PullRequestNews(url=URL, state="merged"))
        task = await result_of(watch)
        history = await watch.query(PullRequestWorkflow.history)
    order = client.get_workflow_handle(watched_order(watch.id))
    await replayed(order, "histories/followed-pull-request")
    first, second = calls_of(doubles, "rework")
    assert first.session_id == f"session-{Step.IMPLEMENT_PLAN}"
    assert second.session_id == f"session-{first.step}"
    assert second.rework is not None
    assert [event.id for event in second.rework.events] == ["checks:2"]
    assert first.starts_from == "round-1"
    assert [call.starts_from for call in calls_of(doubles, "prepare_rework")] == [
        f"after-{Step.CREATE_PULL_REQUEST}",
        f"after-{Step.IMPLEMENT_PLAN}",
    ]
    assert (task.stage, task.rework and task.rework.why) == (Stage.DONE, "the pull request is merged")
    assert task.rework is not None
    assert [(row.number, row.events, row.outcome, row.commit_sha) for row in task.rework.history] == [
        (1, ("title of checks:1",), "done", "badc0de"),
        (2, ("title of checks:2",), "done", "badc0de"),
    ]
    assert [(move.came_from, move.to) for move in history] == [
        ("review", "executing"),
        ("executing", "review"),
        ("review", "executing"),
        ("executing", "review"),
        ("review", "done"),
    ]


async def test_quiet_ends_it(client: Client) -> None:
    """After a quiet period no agent follows the pull request; its merge is still seen."""
    async with watched(client, doubles_with(FollowTerms(quiet_seconds=0.2)), follow_pr=True) as watch:
        task = await until_round(watch, "ended", 0)
        await watch.signal(PullRequestWorkflow.looked, PullRequestNews(url=URL, state="merged"))
        merged = await result_of(watch)
    assert task.rework is not None
    assert task.rework.why == "nothing was new for a while"
    assert merged.stage is Stage.DONE


def over_budget(call: StepCall) -> StepResult:
    """End because the rounds' budget is used up."""
    result = ended(call, Verdict.OVER_BUDGET, SPENT.message, budget_wait=SPENT)
    return result.model_copy(update={"session_id": "paused", "run": "1-rework-1"})


async def until_budget(watch: WorkflowHandle[Any, Any], wait: BudgetWait | None) -> Task:
    return await until(watch, lambda task: task.budget == wait)


async def test_a_round_waits_for_its_budget_and_continues_when_it_is_raised(client: Client) -> None:
    """People get one notification, with the command that raises the budget; the wait uses no time of the rounds."""
    doubles = doubles_with(FollowTerms(work_seconds=3600.0), NOTIFIES)
    doubles.rework = [over_budget, over_budget, lambda call: done(call, "Mended.", commit_sha="badc0de")]
    async with watched(client, doubles, "pull_request/round-over-budget", follow_pr=True) as watch:
        await tell(watch, "checks:1")
        task = await until_budget(watch, SPENT)
        assert (task.status, task.stage, task.question) == (
            Status.COMPLETED,
            Stage.EXECUTING,
            f"{SPENT.message} {SPENT.remedy}",
        )
        orders = WorkOrders(client, doubles.task_queue)
        assert (await orders.get(watched_order(watch.id))).budget == SPENT
        await watch.signal(PullRequestWorkflow.budget_open, SPENT.scope)
        await wait_until(lambda: len(calls_of(doubles, "rework")) > 1)
        await until_budget(watch, SPENT)
        await watch.signal(PullRequestWorkflow.nudge)
        task = await until_round(watch, "waiting", 1)
    assert (task.budget, task.stage, task.commit_sha) == (None, Stage.REVIEW, "badc0de")
    assert [call.session_id for call in calls_of(doubles, "rework")][1:] == ["paused", "paused"]
    told = [(sent.kind, sent.reason, sent.remedy) for sent in doubles.sent if sent.kind == "waiting"]
    assert told == [("waiting", SPENT.message, SPENT.remedy)]


PROTECTED = KeyFinding(kind="path", id="c0ffee" * 2, path=".github/workflows/ci.yml", rule="changed")


KEY = KeyFinding(id="decade" * 2, path="src/pay.py", line=8, rule="stripe-access-token")


def found(*findings: KeyFinding) -> Any:
    """Return a round's result with findings, which may not be pushed."""
    return lambda call: ended(call, Verdict.UNPROVEN, "It waits.", findings=findings)


async def until_findings(watch: WorkflowHandle[Any, Any], *findings: KeyFinding) -> Task:
    return await until(watch, lambda task: task.findings == findings)


async def test_a_round_waits_with_a_protected_path_for_a_persons_yes(client: Client) -> None:
    """The agent gets no retry; a notification names the path, and the approval holds for this round and later rounds."""
    doubles = doubles_with(FollowTerms(work_seconds=3600.0), NOTIFIES)
    doubles.rework = [found(PROTECTED), lambda call: done(call, "Mended.", commit_sha="badc0de")]
    async with watched(client, doubles, follow_pr=True) as watch:
        orders, order_id = WorkOrders(client, doubles.task_queue), watched_order(watch.id)
        await tell(watch, "checks:1")
        task = await until_findings(watch, PROTECTED)
        assert (task.status, task.stage) == (Status.COMPLETED, Stage.EXECUTING)
        assert f"septet approve {order_id} --finding {PROTECTED.id}" in task.question
        shown = await orders.get(order_id)
        assert (shown.findings, ".github/workflows/ci.yml" in need_of(shown)) == ((PROTECTED,), True)
        decisions = OrderDecisions(orders)
        with pytest.raises(RefusedTransitionError, match="0{12}"):
            await decisions.approve(order_id, findings=("0" * 12,))
        await decisions.approve(order_id, who="ann", findings=(PROTECTED.id,))
        task = await until_round(watch, "waiting", 1)
        assert (task.findings, task.commit_sha, (await orders.get(order_id)).findings) == ((), "badc0de", ())
        history = await watch.query(PullRequestWorkflow.history)
        assert [move.who for move in history] == ["septet", "ann", "septet"]
        with pytest.raises(RefusedTransitionError, match="nothing to decide"):
            await decisions.approve(order_id, findings=(PROTECTED.id,))
        await tell(watch, "checks:2")
        await until_round(watch, "waiting", 2)
    calls = calls_of(doubles, "rework")
    assert [call.allowed_findings for call in calls] == [(), (PROTECTED.id,), (PROTECTED.id,)]
    assert "leave it: .github/workflows/ci.yml (changed)" in calls[1].reasons[0]
    assert [call.attempt for call in calls_of(doubles, "prepare_rework")] == [1, 2, 1]
    told = [sent for sent in doubles.sent if sent.kind == "waiting"]
    assert [PROTECTED.path in sent.reason for sent in told] == [True]


async def test_a_round_with_a_key_is_told_once_and_then_waits(client: Client) -> None:
    """A rejection runs the round again; later findings wait again."""
    doubles = doubles_with(FollowTerms())
    doubles.rework = [found(KEY), found(KEY, PROTECTED), found(PROTECTED), lambda call: done(call, "Mended.")]
    async with watched(client, doubles, follow_pr=True) as watch:
        order_id, decisions = watched_order(watch.id), OrderDecisions(WorkOrders(client, doubles.task_queue))
        await tell(watch, "checks:1")
        await until_findings(watch, KEY, PROTECTED)
        await decisions.reject(order_id, "Read it from the environment.", who="ann")
        await until_findings(watch, PROTECTED)
        await decisions.approve(order_id, findings=(PROTECTED.id,))
        await until_round(watch, "waiting", 1)
    assert "Read it from the environment." in calls_of(doubles, "rework")[2].reasons[0]
    assert [call.attempt for call in calls_of(doubles, "prepare_rework")] == [1, 2, 3, 4]


async def test_what_cannot_be_done_ends_it_with_the_reason(client: Client) -> None:
    """An activity that fails for good gives the reason, and the pull request stays in review."""

    def fail(_call: StepCall) -> StepResult:
        raise ApplicationError("The agent is not here.", type="AgentMissing", non_retryable=True)

    doubles = doubles_with(FollowTerms())
    doubles.rework = [fail]
    async with watched(client, doubles, follow_pr=True) as watch:
        await tell(watch, "checks:1")
        task = await until_round(watch, "ended", 1)
    assert task.stage is Stage.REVIEW
    assert task.rework is not None
    assert "The agent is not here." in task.rework.why


async def test_what_is_answered_already_counts_for_no_round(client: Client) -> None:
    """If the preparation finds nothing to do, no agent starts."""
    doubles = doubles_with(FollowTerms())
    doubles.preparation = "answered"
    async with watched(client, doubles, follow_pr=True) as watch:
        await tell(watch, "checks:1")
        await wait_until(lambda: calls_of(doubles, "prepare_rework"))
        task = await until_round(watch, "waiting", 0)
    assert calls_of(doubles, "rework") == []
    assert task.stage is Stage.REVIEW
    assert task.rework is not None
    assert task.rework.history == ()


@pytest.mark.parametrize(
    ("terms", "limit"),
    [
        (FollowTerms(rounds=1), "the round limit (1)"),
        (FollowTerms(work_seconds=1e-6), "the time limit for rounds"),
    ],
    ids=["rounds", "time"],
)
async def test_rounds_are_bounded(client: Client, terms: FollowTerms, limit: str) -> None:
    """At the limit no agent starts, and the task names the events that wait for a person."""
    doubles = doubles_with(terms)
    async with watched(client, doubles, follow_pr=True) as watch:
        await tell(watch, "checks:1")
        await until_round(watch, "waiting", 1)
        await tell(watch, "checks:2")
        task = await until_round(watch, "ended", 1)
    assert task.rework is not None
    assert task.rework.why == f"{limit} is reached, and this still needs you: title of checks:2"
    assert (task.stage, len(calls_of(doubles, "rework"))) == (Stage.REVIEW, 1)


async def test_a_retry_is_refused_while_an_agent_works_and_a_cancel_ends_it(client: Client) -> None:
    """The remedy names the cancel; after a cancel the pull request is a person's, and later events start nothing."""
    doubles = doubles_with(FollowTerms())
    doubles.rework = [works_until_cancelled]
    async with watched(client, doubles, "pull_request/rework-ended", follow_pr=True) as watch:
        orders, order_id = WorkOrders(client, doubles.task_queue), watched_order(watch.id)
        await tell(watch, "checks:1")
        await wait_until(lambda: calls_of(doubles, "rework"))
        assert (await orders.get(order_id)).stage is Stage.EXECUTING
        with pytest.raises(RefusedTransitionError) as refused:
            await OrderDecisions(orders).retry(order_id, RetryCall(from_step=Step.IMPLEMENT_PLAN))
        assert f"septet cancel {order_id}" in refused.value.remedy
        task = (await OrderDecisions(orders, "comment/1").cancel(order_id, "ann", "I do it")).task
        assert task.stage is Stage.REVIEW
        assert await has_taken(watch, "comment/1"), "a second attempt of a comment's command finds that"
        task = await until_round(watch, "ended", 1)
        await tell(watch, "checks:2")
        assert (await orders.get(order_id)).rework == task.rework
    assert task.rework is not None
    assert "I do it" in task.rework.why
    assert [row.outcome for row in task.rework.history] == ["ended"]
    assert len(calls_of(doubles, "rework")) == 1


async def test_a_round_continues_elsewhere_when_a_person_says_that_its_host_is_dead(client: Client) -> None:
    """The server finds the round by its host and by no other host; without an agent at work, no round is found."""
    dead = f"dead-{uuid.uuid4().hex}"
    doubles = doubles_with(FollowTerms(), LIVENESS, host=dead, control_queue=f"{dead}-control", kept=True)
    doubles.move_workspace = lambda asked: asked.workspace.model_copy(update={"host": "living"})
    doubles.rework = [works_until_cancelled, lambda call: done(call, "Mended.", commit_sha="badc0de")]
    async with watched(client, doubles, follow_pr=True) as watch:
        assert await given_up(client, dead) is None
        await tell(watch, "checks:1")
        await wait_until(lambda: calls_of(doubles, "rework"))
        assert await given_up(client, "living") is None
        assert await wait_until(partial(given_up, client, dead)) == [watched_order(watch.id)]
        await until_round(watch, "waiting", 1)
    assert [call.workspace.host for call in calls_of(doubles, "rework")] == [dead, "living"]


async def test_nobody_follows_unasked(client: Client) -> None:
    """Without a setting of the work order or the repository, events start nothing; the repository's default is enough."""
    doubles = doubles_with(FollowTerms())
    async with watched(client, doubles) as watch:
        await tell(watch, "checks:1")
        assert (await watch.query(PullRequestWorkflow.work_order)).rework is None
    assert calls_of(doubles, "prepare_rework") == []
    doubles = doubles_with(FollowTerms(by_default=True))
    async with watched(client, doubles) as watch:
        await tell(watch, "checks:1")
        await until_round(watch, "waiting", 1)


async def test_what_a_forge_tells_has_it_looked_at_now(client: Client) -> None:
    """Reviews, checks of the commit and pushes wake the watch once per delivery; a watch without an agent does not wake."""
    doubles = doubles_with(FollowTerms())
    deliveries = Deliveries(client, doubles.task_queue)
    origin: dict[str, Any] = {"forge": "github", "repository": f"https://forge.example/{uuid.uuid4().hex}"}
    url = f"{origin['repository']}/pull/1"
    doubles.steps[Step.CREATE_PULL_REQUEST] = [lambda call: done(call, url)]
    review = PullRequestTouched(**origin, url=url, look="followers")
    others = PullRequestTouched(**origin, commit="0" * 40, look="followers")
    async with watched(client, doubles, follow_pr=True) as watch:
        # The server lists the watch a moment after it began, and lists that an agent follows a moment later.
        await wait_until(lambda: deliveries.take(review, "delivery 1"), lambda reply: reply.accepted)
        commit = (await watch.query(PullRequestWorkflow.work_order)).commit_sha or ""
        checks = PullRequestTouched(**origin, commit=commit, look="followers")
        named = others.model_copy(update={"pull_requests": (1,)})
        for number, event in enumerate((review, checks, review, named), start=1):
            told = [await deliveries.take(event, f"delivery {number}") for _ in range(2)]
            assert [reply.workflows for reply in told] == [(watch.id,)] * 2, event
            await wait_until(lambda: len(doubles.looks), partial(eq, number))
        for event in (
            others,
            checks.model_copy(update={"look": "none"}),
            review.model_copy(update={"url": f"{url}0"}),
        ):
            assert not (await deliveries.take(event, "another")).accepted, event
        doubles.pull_requests[url] = "merged"
        await deliveries.take(review, "delivery 5")
        assert (await result_of(watch)).stage is Stage.DONE
    assert len(doubles.looks) == 5
    doubles = doubles_with(FollowTerms())
    async with watched(client, doubles) as watch:
        there = (await watch.query(PullRequestWorkflow.work_order)).pr_url or ""
        reply = await Deliveries(client, doubles.task_queue).take(review.model_copy(update={"url": there}), "1")
        assert (reply.accepted, reply.why) == (False, "No agent follows this pull request.")
    assert doubles.looks == []
