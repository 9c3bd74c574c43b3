"""Accounts of budgets on a real server: workers reserve from the accounts, and work orders wait for budget."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from operator import eq
from pathlib import Path

import pytest
from fakes.activities import Doubles, done, ended
from fakes.pipeline_line import line_of, statuses
from fakes.running import refusal, replayed, result_of, start, until, worker_of
from fakes.waiting import wait_until
from temporalio.client import Client

from clients.pipelines.client import PipelineClient
from clients.temporal.budgets import BudgetClient
from septet.budgets.account import (
    MOST_WAITING,
    AccountState,
    AccountView,
    LimitCall,
    RaiseCall,
    ReserveCall,
    SettleCall,
    account_id,
)
from septet.contracts.amounts import BudgetWait, Spending, parse_limit
from septet.contracts.facts import Usage
from septet.contracts.names import Stage, Status, Step, Verdict
from septet.contracts.pauses import QuotaPause, quota_id
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import NOTIFIES, Task
from septet.contracts.task_rows import MEMO
from septet.errors import NotFoundError
from septet.state import StateDir
from septet.telemetry.metrics import UNSERVED, Metric
from septet.telemetry.recorder import Recorder
from workers.server.server import temporal_program
from workers.watching.accounts import AccountNotReachedError, FleetAccounts
from workers.watching.amount_metrics import AmountMetrics, MetricsTurn
from workflows.budgets import Account, Quota
from workflows.work_order.workflow import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

ORDER = "order/wo-1"


@asynccontextmanager
async def fleet(
    client: Client, task_queue: str = "", cached: int = 1000
) -> AsyncIterator[tuple[Doubles, BudgetClient]]:
    doubles = Doubles(task_queue or f"queue-{uuid.uuid4().hex}")
    worker = worker_of(client, doubles, Account, Quota, max_cached_workflows=cached)
    async with worker:
        yield doubles, BudgetClient(client, doubles.task_queue)


@pytest.mark.parametrize("told", [True, False])
async def test_people_are_notified_once_of_a_budget_at_each_limit(client: Client, *, told: bool) -> None:
    """People get one notification of a spent budget at each limit, and none while other turns hold the rest."""
    used_up = BudgetWait(scope="day", limit="5usd/day", message="It is used up.", remedy="Raise it.")
    held = used_up.model_copy(update={"message": "Others hold the rest.", "is_spent": False})
    raised = used_up.model_copy(update={"limit": "6usd/day", "message": "It is used up again."})
    waits = [held, used_up, used_up, held, raised]
    async with fleet(client) as (doubles, _):
        serves = (NOTIFIES,) if told else ()
        doubles.open_workspace = lambda asked: doubles.workspace(asked).model_copy(update={"serves": serves})
        over = [partial(ended, verdict=Verdict.OVER_BUDGET, budget_wait=wait) for wait in waits]
        doubles.steps = {Step.BUILD_PLAN: [*over, done]}
        handle = await start(client, doubles.task_queue)

        async def asked() -> tuple[BudgetWait | None, int]:
            """Return the budget that the work order waits for, and the number of its attempts of the step."""
            task = await handle.query(WorkOrder.work_order)
            return task.budget, len(doubles.calls_of(Step.BUILD_PLAN))

        for number, wait in enumerate(waits, start=1):
            await wait_until(asked, partial(eq, (wait, number)))
            await handle.signal(WorkOrder.budget_open, "day")
        await result_of(handle)
        kinds = ["waiting", "waiting", "completed"] if told else []
        await wait_until(lambda: len(doubles.sent) == len(kinds))
        assert sorted(sent.kind for sent in doubles.sent) == sorted(kinds)
        reasons = {(sent.reason, sent.remedy) for sent in doubles.sent if sent.kind == "waiting"}
        assert reasons == ({(wait.message, "Raise it.") for wait in (used_up, raised)} if told else set())
        await replayed(handle, "histories/notified-of-spent-budget" if told else "")


async def test_lists_tell_what_a_work_order_used_and_made_after_it_has_waited(client: Client) -> None:
    """At its end, a work order's row in lists has its commit and the use of all its steps."""
    wait = BudgetWait(scope="day", limit="5usd/day", message="It is used up.", remedy="Raise it.")
    async with fleet(client) as (doubles, _):
        over = partial(ended, verdict=Verdict.OVER_BUDGET, budget_wait=wait)
        used = partial(done, usage=Usage(output_tokens=7, cost_usd=0.5))
        doubles.steps = {Step.IMPLEMENT_PLAN: [over, done], Step.CREATE_PULL_REQUEST: [used]}
        handle = await start(client, doubles.task_queue)
        await until(handle, lambda task: task.budget is not None)
        await handle.signal(WorkOrder.budget_open, "day")
        task = await result_of(handle)
        row = Task.model_validate(await (await handle.describe()).memo_value(MEMO), strict=False)
        assert (row.status, row.commit_sha, row.usage) == (Status.COMPLETED, task.commit_sha, task.usage)
        assert (row.commit_sha, row.usage.output_tokens) == ("c0ffee", 7)
        await replayed(handle, "histories/waited-after-its-branch")


async def test_an_account_keeps_the_rules_of_the_clients(client: Client) -> None:
    """An account, which Temporal's own command line calls too, refuses an unknown step and an amount in another form."""
    async with fleet(client) as (_, budgets):
        with pytest.raises(NotFoundError, match="no budget of order/wo-1"):
            await budgets.raise_limit("wo-1", LimitCall(limit="5usd"))
        await budgets.set("wo-1", LimitCall(limit="0.02usd"))
        account = client.get_workflow_handle(account_id(budgets.task_queue, ORDER))
        for name, call, words in (
            (
                "set_limit",
                {"limit": "0.01usd", "step": "bogus"},
                "'bogus' is not a step. Name one of classify_issue",
            ),
            ("raise_limit", {"limit": "much"}, "raise_limit: limit"),
            ("raise_limit", {"limit": "1usd", "expected": "much"}, "expected must be an amount such as"),
            ("raise_limit", {"limit": "1usd", "expected": "0.02 USD"}, "expected must be written as 0.02usd"),
        ):
            assert words in await refusal(account.execute_update(name, call))
        raised = {"limit": "5usd", "expected": "0.02usd", "who": "ann"}
        assert (await account.execute_update("raise_limit", raised))["is_raised"]
        assert (await budgets.show("wo-1")).budget.limit == "5.02usd"


async def test_a_list_of_budgets_begins_with_those_of_the_day_and_the_projects_and_goes_on(client: Client) -> None:
    """Budgets of the day and of projects come first; the others follow page by page, the newest first."""
    async with fleet(client) as (_, budgets):
        scopes = ["project/o/r", "day", "wo-1", "wo-2", "pipeline/pl-1"]
        for scope in scopes:
            await budgets.set(scope, LimitCall(limit="5usd"))

        async def pages() -> list[list[str]]:
            found, after = list[list[str]](), ""
            while not found or after:
                answer = await budgets.list(after=after, limit=2)
                found.append([each.scope for each in answer.budgets])
                after = answer.next or ""
            return found

        expected = [["day", "project/o/r", "pipeline/pl-1", "order/wo-2"], ["order/wo-1"]]
        await wait_until(pages, partial(eq, expected))
        with pytest.raises(NotFoundError, match="is not the `next` of a list"):
            await budgets.list(after="elsewhere")


async def test_a_list_goes_without_a_budget_that_does_not_answer(client: Client) -> None:
    """A budget that does not answer hides no other budget from the list."""
    async with fleet(client) as (_, budgets):
        await budgets.set("wo-1", LimitCall(limit="5usd"))
        still = account_id(budgets.task_queue, "day")
        nobody = f"{budgets.task_queue}-nobody"
        handle = await client.start_workflow("Account", AccountState(scope="day"), id=still, task_queue=nobody)
        accounts = f'WorkflowId STARTS_WITH "{budgets.task_queue}-budget/"'
        await wait_until(lambda: client.count_workflows(accounts), lambda found: found.count == 2)
        assert [each.scope for each in (await budgets.list()).budgets] == [ORDER]
        await handle.terminate()


@pytest.mark.parametrize("step", ["", "build_plan"])
async def test_a_raise_that_is_sent_twice_adds_once_and_says_so(client: Client, step: str) -> None:
    """A raise with the limit that its sender saw is added once; a raise without that limit is added each time."""
    async with fleet(client) as (_, budgets):
        await budgets.set("wo-1", LimitCall(limit="5usd", step=step))
        call = RaiseCall(limit="3usd", step=step, expected="5usd")
        replies = await asyncio.gather(*(budgets.raise_limit("wo-1", call) for _ in range(3)))
        assert sorted(reply.is_raised for reply in replies) == [False, False, True]
        view = replies[0].budget
        assert (view.step_limits[step] if step else view.limit) == "8usd"
        replies = [await budgets.raise_limit("wo-1", LimitCall(limit="1usd", step=step)) for _ in range(2)]
        assert [reply.is_raised for reply in replies] == [True, True]
        view = replies[-1].budget
        assert (view.step_limits[step] if step else view.limit) == "10usd"


async def test_an_account_that_goes_on_in_a_new_run_loses_no_word_and_no_call(short_runs: Client) -> None:
    """The account keeps its sums over runs, and a raise right before a new run calls all waiting work orders."""
    scope, names = "project/o/r", [f"wo-{number}" for number in range(15)]
    async with fleet(short_runs, cached=0) as (doubles, budgets):
        accounts = FleetAccounts(short_runs, doubles.task_queue)
        account = short_runs.get_workflow_handle(f"{doubles.task_queue}-budget/{scope}")
        await budgets.set(scope, LimitCall(limit="900usd"))
        first_run = (await account.describe()).run_id

        async def is_granted(key: str) -> bool:
            asked = ReserveCall(key=key, order_id=key, step="build_plan")
            grant = await accounts.reserve(AccountState(scope=scope), asked, opens=False)
            return grant is not None and grant.granted

        async def turn(number: int) -> None:
            assert await is_granted(f"turn-{number}")
            await accounts.settle(scope, SettleCall(key=f"turn-{number}", used=Spending(usd=1.0)))

        for first in range(0, 21, 3):
            await asyncio.gather(*(turn(number) for number in range(first, first + 3)))
        assert (await account.describe()).run_id != first_run
        await budgets.set(scope, LimitCall(limit="21usd"))
        assert [name for name in names if await is_granted(name)] == []
        view = (await budgets.show(scope)).budget
        assert (view.total.usd, view.total.turns, view.waiting_count) == (21.0, 21, 15)
    before = (await account.describe()).run_id
    raised = asyncio.create_task(account.execute_update("raise_limit", LimitCall(limit="900usd")))
    for _ in range(40):
        await accounts.settle(scope, SettleCall(key="turn-0"))
    async with fleet(short_runs, doubles.task_queue, cached=0):
        await raised
        await wait_until(lambda: budgets.show(scope), lambda answer: not answer.budget.waiting)
        assert (await account.describe()).run_id != before


async def test_an_account_that_no_worker_takes_up_is_asked_again_later(client: Client) -> None:
    """Without an answer of the account, the attempt ends with a retryable error; a cancelled attempt is cancelled."""
    opening = AccountState(scope="day", limit=parse_limit("5usd"))
    accounts = FleetAccounts(client, f"queue-{uuid.uuid4().hex}", timedelta(seconds=1))
    asked = ReserveCall(key="turn-1", order_id="wo-1")
    with pytest.raises(AccountNotReachedError, match="did not answer") as silent:
        await accounts.reserve(opening, asked, opens=True)
    assert silent.value.retryable
    waiting = asyncio.create_task(FleetAccounts(client, accounts.task_queue).reserve(opening, asked, opens=True))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_wait_that_the_account_has_no_room_for_is_not_listed(client: Client) -> None:
    """An account lists a limited number of waiting work orders; the reply to the next says that it is not listed."""
    async with fleet(client) as (doubles, _):
        accounts = FleetAccounts(client, doubles.task_queue)
        waiting = tuple(f"wo-{number}" for number in range(MOST_WAITING))
        spent, limit = Spending(usd=3.0), parse_limit("3usd")
        opening = AccountState(scope="project/o/r", limit=limit, total=spent, waiting=waiting, to_call=())
        grant = await accounts.reserve(opening, ReserveCall(key="late", order_id="wo-late"), opens=True)
        assert grant is not None
        assert not grant.is_listed
        account = client.get_workflow_handle(account_id(doubles.task_queue, opening.scope))
        await replayed(account, "budget/account-full")


async def test_a_paused_login_is_known_to_every_host_until_its_limit_begins_anew(client: Client) -> None:
    """Each host reads the pause without a worker; a later end extends the pause, and the pause ends by itself."""
    async with fleet(client) as (doubles, _):
        one, other = (FleetAccounts(client, doubles.task_queue) for _ in range(2))
        assert await other.find_pause("login") is None
        await one.note_pause("login", QuotaPause(agent="claude", until=time.time() + 1.0, message="limit reached"))
        found = await other.find_pause("login")
        assert found is not None
        assert found.message == "limit reached"
        later = QuotaPause(agent="claude", until=time.time() + 3.0)
        await other.note_pause("login", later)
        await wait_until(
            lambda: one.find_pause("login"), lambda pause: pause is not None and pause.until == later.until
        )
        await wait_until(lambda: one.find_pause("login"), lambda pause: pause is None)
        assert await one.find_pause("another") is None
        await replayed(client.get_workflow_handle(quota_id(doubles.task_queue, "login")), "budget/quota")


async def test_a_pause_ends_within_a_month_and_can_be_lifted(client: Client) -> None:
    """A pause lasts at most 32 days, whatever end a host has read; the runbook's command lifts it at once."""
    async with fleet(client) as (doubles, _):
        accounts = FleetAccounts(client, doubles.task_queue)
        await accounts.note_pause("login", QuotaPause(agent="claude", until=9_999_999_999.0))
        handle = client.get_workflow_handle(quota_id(doubles.task_queue, "login"))

        async def timers() -> list[float]:
            events = (await handle.fetch_history()).events
            started = [
                each.timer_started_event_attributes
                for each in events
                if each.HasField("timer_started_event_attributes")
            ]
            return [each.start_to_fire_timeout.ToTimedelta().total_seconds() for each in started]

        assert await wait_until(timers) == [pytest.approx(32 * 86400.0, abs=60.0)]
        await replayed(handle)
        address = client.service_client.config.target_host
        lift = "workflow", "terminate", "--workflow-id", handle.id, "--address", address
        process = await asyncio.create_subprocess_exec(temporal_program(), *lift)
        assert await process.wait() == 0
        assert await accounts.find_pause("login") is None


async def test_budgets_and_paused_logins_are_measured(client: Client) -> None:
    """Metrics report the use and limits of the day's and the projects' budgets, and the end of pauses and limits."""
    async with fleet(client) as (doubles, budgets):
        accounts, values = FleetAccounts(client, doubles.task_queue), dict[tuple[str, ...], float]()

        def take(metric: Metric, value: float, labels: Mapping[str, str]) -> None:
            if metric is not UNSERVED:
                values[metric.name, *labels.values()] = value

        recorder = Recorder()
        recorder.send_to(take)
        metrics = AmountMetrics(client, doubles.task_queue, recorder)
        await metrics.look()
        assert values == {}
        await budgets.set("day", LimitCall(limit="20usd"))
        await budgets.set("project/o/r", LimitCall(limit="9usd,5min"))
        await budgets.set("wo-1", LimitCall(limit="1usd"))
        asked = ReserveCall(key="turn-1", order_id="wo-1")
        for scope in ("day", "project/o/r"):
            await accounts.reserve(AccountState(scope=scope), asked, opens=False)
            await accounts.settle(scope, SettleCall(key="turn-1", used=Spending(usd=2.5, tokens=70, seconds=30)))
        await accounts.note_pause("login", QuotaPause(agent="claude", until=time.time() + 5.0))
        await accounts.note_pause("forge", QuotaPause(agent="api.github.com", until=time.time() + 5.0))
        expected = {
            ("septet_budget_used", "day", "usd"): 2.5,
            ("septet_budget_used", "day", "tokens"): 70,
            ("septet_budget_limit", "day", "usd"): 20.0,
            ("septet_budget_waiting", "day"): 0,
            ("septet_budget_used", "project/o/r", "seconds"): 30.0,
            ("septet_budget_limit", "project/o/r", "seconds"): 300.0,
            ("septet_paused_logins", "claude"): 1,
        }

        async def measured() -> dict[tuple[str, ...], float]:
            await metrics.look()
            return values

        await wait_until(measured, lambda found: expected.items() <= found.items())
        assert not any({"order/wo-1", "api.github.com"} & {*name} for name in values)
        await wait_until(measured, lambda found: found["septet_paused_logins", "claude"] == 0)
        await budgets.set("project/o/r", LimitCall(limit="9usd"))
        await budgets.set("day", LimitCall(limit="none"))
        ends = {
            ("septet_budget_limit", "project/o/r", "seconds"): math.inf,
            ("septet_budget_limit", "project/o/r", "usd"): 9.0,
            ("septet_budget_limit", "day", "usd"): math.inf,
        }
        await wait_until(measured, lambda found: ends.items() <= found.items())


async def test_one_process_measures_for_all_and_asks_no_account_that_nobody_told_anything(
    client: Client, tmp_path: Path
) -> None:
    """Another process takes over when the first ends; the first then reports its values as unknown, not as old ones."""

    def measuring(turn: MetricsTurn) -> tuple[AmountMetrics, dict[tuple[str, ...], float]]:
        values, recorder = dict[tuple[str, ...], float](), Recorder()
        recorder.send_to(lambda metric, value, labels: values.update({(metric.name, *labels.values()): value}))
        return AmountMetrics(client, budgets.task_queue, recorder, is_ours=turn.is_ours), values

    used = "septet_budget_used", "day", "usd"
    async with fleet(client) as (_, budgets):
        await budgets.set("day", LimitCall(limit="20usd"))
        with MetricsTurn(tmp_path / "lock", None) as first, MetricsTurn(tmp_path / "lock", None) as second:
            (one, of_one), (other, of_other) = measuring(first), measuring(second)
            for metrics in (one, other, one, other):
                await metrics.look()
            assert (of_one[used], of_other) == (0.0, {})
            asked = ReserveCall(key="turn-1", order_id="wo-1")
            accounts = FleetAccounts(client, budgets.task_queue)
            await accounts.reserve(AccountState(scope="day"), asked, opens=False)
            await accounts.settle("day", SettleCall(key="turn-1", used=Spending(usd=2.5)))

            async def measured(metrics: AmountMetrics, values: dict[tuple[str, ...], float]) -> float | None:
                await metrics.look()
                return values.get(used)

            await wait_until(partial(measured, one, of_one), partial(eq, 2.5))
            first.__exit__()
            await wait_until(partial(measured, other, of_other), partial(eq, 2.5))
            assert math.isnan(await measured(one, of_one) or 0.0)
    of_other.clear()
    with MetricsTurn(tmp_path / "lock", None) as third:
        other.is_ours = third.is_ours
        await other.look()  # no worker runs that could answer
    assert of_other[used] == 2.5


async def test_a_pipeline_waits_for_its_budget_and_continues_when_it_is_raised(
    client: Client, tmp_path: Path
) -> None:
    """Its work orders wait and say for which budget; after raises all issues are done, and each turn counts once."""
    async with line_of(client) as line:
        accounts = FleetAccounts(client, line.doubles.task_queue)

        async def spend(call: StepCall) -> StepResult:
            """Use a dollar, reserved from the account of the pipeline."""
            opening = AccountState(scope=f"pipeline/{call.pipeline}", limit=parse_limit("5usd"))
            asked = ReserveCall(key=uuid.uuid4().hex, order_id=call.workspace.work_order_id, step=call.step.value)
            grant = await accounts.reserve(opening, asked, opens=True)
            assert grant is not None
            if grant.wait is not None:
                return ended(call, Verdict.OVER_BUDGET, grant.wait.message, budget_wait=grant.wait)
            result = await line.step(call)
            await accounts.settle(opening.scope, SettleCall(key=asked.key, used=Spending(usd=1.0)))
            return result.model_copy(update={"usage": Usage(cost_usd=1.0)})

        line.doubles.steps = {step: [spend] for step in Step}
        handle = await line.start("a", "b", budget="5usd")
        budgets, scope = BudgetClient(client, line.doubles.task_queue), f"pipeline/{handle.id}"

        async def waits() -> AccountView | None:
            try:
                view = (await budgets.show(scope)).budget
            except NotFoundError:
                return None
            return view if view.waiting and not view.running else None

        view = await wait_until(waits)
        assert (view.spent.usd, view.limit) == (5.0, "5usd")
        order = client.get_workflow_handle(view.waiting[0])

        def asks(task: Task) -> bool:
            """Say whether the budget is spent, and not only reserved by another turn."""
            return task.budget is not None and task.budget.is_spent

        task = await until(order, asks)
        assert (task.status, task.stage) == (Status.WAITING, Stage.EXECUTING)
        assert f"septet budget raise {scope} 5usd" in task.question
        pipelines = PipelineClient(client, line.doubles.task_queue, state=StateDir(tmp_path))
        shown = await wait_until(lambda: pipelines.show(handle.id), lambda reply: bool(reply.pipeline.needs))
        assert shown.pipeline.needs == (task.question,)
        assert line.doubles.calls_of(Step.CLASSIFY_ISSUE)[0].pipeline_budget == "5usd"
        await budgets.raise_limit(scope, LimitCall(limit="3usd"))
        await wait_until(lambda: budgets.show(scope), lambda answer: answer.budget.spent.usd == 8.0)
        await wait_until(waits)
        await budgets.raise_limit(scope, LimitCall(limit="20usd"))
        pipeline = await result_of(handle)
        assert statuses(pipeline) == ["completed", "completed"]
        view = (await budgets.show(scope)).budget
        taken = [event for event in line.events if event.endswith(":done")]
        assert (view.total.usd, view.total.turns, view.limit) == (len(taken), len(taken), "28usd")
        assert view.waiting_count == 0
