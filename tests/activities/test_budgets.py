"""A step within a budget: the use of its agents is counted once, however its attempts end."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from fakes.account_books import ORDER, Books
from fakes.agent_lab import is_signed, supervisor_of
from fakes.repositories import Origin
from fakes.step_lab import StepLab, halted, settings_of, step_lab
from fakes.waiting import wait_until
from temporalio.exceptions import ApplicationError

from septet.agents.outcomes.endings import BUDGET
from septet.agents.runs.folders import Run
from septet.agents.runs.usage import seconds_of
from septet.agents.sandbox.connections import short_address
from septet.agents.turns.end_of_turn import end_all
from septet.budgets.account import MOST_WAITING, AccountState, LimitCall
from septet.budgets.account_book import AccountBook
from septet.contracts.amounts import Spending, parse_limit
from septet.contracts.costs import CostNote
from septet.contracts.lanes import SummariseCall
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.errors import WorkspaceBusyError
from septet.system.durable import close_after, lock, open_lock
from workers.recovery.strays import keep_what_was_left_alone
from workers.watching.reports import LeftTurns

_TOKENS = 7
"""The tokens of each message of these agents."""
_HANGS = """
init()
turn('m1')
write('src/half.py', 'half')
time.sleep(300)
"""
_FINISHES = """
init()
turn('m2')
write('src/app.py', 'fixed')
answer({'success': True, 'summary': 'Done.', 'key_changes_made': [], 'key_learnings': []})
"""
_HANGS_ONCE = """
init()
turn('m1')
if len(open(os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), 'journal')).readlines()) == 1:
    write('src/half.py', 'half')
    time.sleep(300)
write('src/app.py', 'fixed')
answer({'success': True, 'summary': 'Done.', 'key_changes_made': [], 'key_learnings': []})
"""


@pytest.fixture
def books() -> Books:
    return Books()


@pytest_asyncio.fixture
async def paid(tmp_path: Path, origin: Origin, books: Books) -> AsyncIterator[StepLab]:
    """Return a host whose agents log in with a key that all hosts share, and are paid from `books`."""
    settings = settings_of(tmp_path)
    environ = {**settings.environ, "SEPTET_SCRIPTED_KEY": "the-fleets-own"}
    settings = settings.model_copy(update={"environ": environ})
    async with step_lab(tmp_path, origin, settings, accounts=books) as lab:
        yield lab


async def test_each_turn_is_counted_once_by_what_its_result_says(paid: StepLab, books: Books) -> None:
    """A step, a retry of the finished step and its finalizer together cost the sum of their results."""
    await paid.open_to(Step.IMPLEMENT_PLAN, {"malformed": "prose"})
    call = paid.call(Step.IMPLEMENT_PLAN, budget="5usd", waits_for_budget=True)
    unread = await paid.running(call)
    again = await paid.running(call)
    assert again.usage == unread.usage
    assert books.view().total.usd == pytest.approx(unread.usage.cost_usd)
    finished = await paid.finalize(call, unread)
    assert finished.verdict is Verdict.DONE
    assert books.view().total.usd == pytest.approx(finished.usage.cost_usd)
    assert books.view().running == 0
    assert [*paid.parts.host.held_turns.places()] == []
    notes = [note for _, note in paid.parts.host.cost_notes.take()]
    assert sum(note.use.usd for note in notes) == pytest.approx(finished.usage.cost_usd)
    assert {(note.order_id, note.step, note.agent) for note in notes} == {("wo-1", "implement_plan", "scripted")}


async def test_a_step_over_its_budget_starts_no_agent_and_says_what_it_waits_for(
    paid: StepLab, books: Books
) -> None:
    """A call of an older workflow, which does not know the verdict, fails with a delay and is tried again instead."""
    await paid.open_to(Step.CLASSIFY_ISSUE, {})
    await paid.run(Step.CLASSIFY_ISSUE, budget="0.01usd", waits_for_budget=True)
    starts = len(paid.runs)
    over = await paid.run(Step.BUILD_PLAN, budget="0.01usd", waits_for_budget=True)
    assert (over.verdict, len(paid.runs), over.checkpoint) == (Verdict.OVER_BUDGET, starts, None)
    assert over.budget_wait is not None
    assert over.budget_wait.scope == ORDER
    refused = await paid.failing(paid.call(Step.FIND_PLAN_FILE, budget="0.01usd"), "is used up")
    assert not refused.non_retryable
    assert refused.next_retry_delay is not None


async def test_a_step_that_its_account_cannot_list_asks_again_by_itself(paid: StepLab, books: Books) -> None:
    """If the account's list of waiting work orders is full, the activity itself is tried again after 15 minutes."""
    await paid.open_to(Step.CLASSIFY_ISSUE, {})
    waiting = tuple(f"wo-before-{number}" for number in range(MOST_WAITING))
    spent = Spending(usd=5.0)
    state = AccountState(scope=ORDER, limit=parse_limit("5usd"), total=spent, waiting=waiting, to_call=())
    books.books[ORDER] = AccountBook(state)
    refused = await paid.failing(paid.call(Step.CLASSIFY_ISSUE, waits_for_budget=True), "is used up")
    assert (refused.non_retryable, refused.next_retry_delay) == (False, timedelta(minutes=15))
    books.books[ORDER].set_limit(LimitCall(limit="9usd"), raises=True)
    assert (await paid.run(Step.CLASSIFY_ISSUE, waits_for_budget=True)).verdict is Verdict.DONE


async def test_what_could_not_be_told_is_told_by_the_next_look(paid: StepLab, books: Books) -> None:
    """If the accounts are away when a step ends, the step is done, and a later pass reports its use."""
    await paid.open_to(Step.CLASSIFY_ISSUE, {})
    books.away = True
    done = await paid.run(Step.CLASSIFY_ISSUE, budget="5usd", waits_for_budget=True)
    assert (done.verdict, books.view().total.usd) == (Verdict.DONE, 0.0)
    assert [*paid.parts.host.held_turns.places()] == ["wo-1"]
    books.away = False
    teller = LeftTurns(paid.parts.host, books)
    assert await teller.look() == 1
    assert books.view().total.usd == pytest.approx(done.usage.cost_usd)
    assert await teller.look() == 0


async def test_a_grant_of_which_the_worker_has_no_note_is_asked_for_again(paid: StepLab, books: Books) -> None:
    """After a kill between grant and note, the next attempt asks for the same turn, which is held and counted once."""
    await paid.open_to(Step.CLASSIFY_ISSUE, {})
    call = paid.call(Step.CLASSIFY_ISSUE, budget="5usd", waits_for_budget=True)
    books.lost_grants = 1
    lost = await paid.failing(call)
    assert not lost.non_retryable
    assert (books.view().running, [*paid.parts.host.held_turns.places()], paid.runs) == (1, [], [])
    done = await paid.running(call)
    assert (books.view().running, books.view().total.turns) == (0, 1)
    assert books.view().total.usd == pytest.approx(done.usage.cost_usd)
    assert [*paid.parts.host.held_turns.places()] == []


async def test_a_turn_whose_attempt_comes_back_is_left_to_it(paid: StepLab, books: Books) -> None:
    """A pass leaves a turn to its own attempt for a time, also if that attempt could not report it at first."""
    await _halted(paid, "worker_shutdown")
    await _supervisor_killed(paid)
    teller = LeftTurns(paid.parts.host, books)
    assert (await teller.look(), books.view().running) == (0, 1)
    books.away = True
    await paid.end_work(Step.IMPLEMENT_PLAN)
    books.away = False
    assert (await teller.look(), books.view().total.tokens, books.view().running) == (1, _TOKENS, 0)


async def test_a_turn_that_is_tried_again_is_left_to_its_new_attempt(paid: StepLab, books: Books) -> None:
    """A pass does not report the turn of a first attempt while a second attempt holds the same turn."""
    await paid.open_to(Step.IMPLEMENT_PLAN, {"api_error": 529})
    books.away = True
    with pytest.raises(ApplicationError, match="529"):
        await paid.run(Step.IMPLEMENT_PLAN, budget="9ktok", waits_for_budget=True)
    books.away = False
    await _halted(paid, "worker_shutdown")
    await _supervisor_killed(paid)
    assert (await LeftTurns(paid.parts.host, books).look(), books.view().running) == (0, 1)


async def test_an_agent_is_stopped_once_its_minutes_are_used_up_and_goes_on_in_its_session(
    paid: StepLab, books: Books
) -> None:
    """An agent that would never end is stopped at its limit of minutes; the time of each run is counted once."""
    await paid.open_to(Step.IMPLEMENT_PLAN)
    paid.agent(_HANGS)
    over = await paid.run(Step.IMPLEMENT_PLAN, budget="0.05min", waits_for_budget=True)
    assert over.budget_wait is not None
    assert (over.verdict, over.budget_wait.limit) == (Verdict.OVER_BUDGET, "0.05min")
    assert {(end.cause, end.why) for run in paid.runs if (end := run.exit())} == {("ended", BUDGET)}
    assert books.view().total.seconds >= 3.0
    paid.agent(_FINISHES)
    books.books[ORDER].set_limit(LimitCall(limit="90min"), raises=True)
    on = paid.call(Step.IMPLEMENT_PLAN, session_id=over.session_id, starts_from=over.checkpoint, attempt=2)
    done = await paid.running(on.model_copy(update={"waits_for_budget": True}))
    assert (done.verdict, done.session_id) == (Verdict.DONE, over.session_id)
    assert books.view().total.seconds == pytest.approx(sum(map(seconds_of, paid.runs)), abs=0.01)


@pytest.mark.parametrize("spent", ["order/wo-1", "pipeline/pl-1", "project/renamed", "day", ""])
async def test_a_lanes_summary_is_paid_from_all_budgets_and_waits_for_none(
    paid: StepLab, books: Books, spent: str
) -> None:
    """If one budget is used up, no agent starts, and the lane has no summary."""
    await paid.open()
    paid.scenario()
    asked = {"project": "renamed", "budget": "5usd", "pipeline_budget": "9usd"}
    result = await paid.run(Step.CLASSIFY_ISSUE, pipeline="pl-1", **asked)
    for scope in ("project/renamed", "day"):
        books.books[scope] = AccountBook(AccountState(scope=scope, limit=parse_limit("7usd")))
    if spent:
        state = books.books[spent].state
        books.books[spent] = AccountBook(state.model_copy(update={"total": Spending(usd=9.0)}))
    before, starts = {scope: books.view(scope).total for scope in books.books}, len(paid.runs)
    assert paid.workspace is not None
    assert result.session_id is not None
    call = SummariseCall(workspace=paid.workspace, pipeline="pl-1", session_id=result.session_id)
    summary = await paid.summarise(call.model_copy(update=asked))
    counted = {scope for scope in books.books if books.view(scope).total != before[scope]}
    assert counted == (set() if spent else set(books.books))
    assert ("is used up" in summary.warning, len(paid.runs)) == (bool(spent), starts + (not spent))
    assert all(books.view(scope).running == 0 for scope in books.books)


async def test_a_login_is_paused_for_as_long_as_the_server_says_so(paid: StepLab, books: Books) -> None:
    """A host whose clock is ahead of the server's starts no agent before the limit ends, and waits a minute at most."""
    await paid.open_to(Step.CLASSIFY_ISSUE, {"api_error": 429})
    with pytest.raises(ApplicationError, match="429"):
        await paid.run(Step.CLASSIFY_ISSUE)
    over = {login: pause.model_copy(update={"until": time.time() - 5.0}) for login, pause in books.pauses.items()}
    books.pauses, books.behind_seconds = over, 60.0
    refused = await paid.failing(paid.call(Step.CLASSIFY_ISSUE), "usage limit of scripted's login")
    assert refused.next_retry_delay is not None
    assert refused.next_retry_delay.total_seconds() > 1.0
    assert len(paid.runs) == 1
    paid.scenario()
    books.pauses = {login: pause.model_copy(update={"until": 1.0}) for login, pause in over.items()}
    books.behind_seconds = time.time()
    assert (await paid.run(Step.CLASSIFY_ISSUE)).verdict is Verdict.DONE


async def _halted(
    paid: StepLab, why: str, program: str = _HANGS, **facts: str
) -> tuple[StepCall, asyncio.Task[StepResult]]:
    """Return the call and the end of a step that was halted after its hanging agent had written a message."""
    if paid.workspace is None:
        await paid.open_to(Step.IMPLEMENT_PLAN)
    paid.agent(program)
    call = paid.call(Step.IMPLEMENT_PLAN, **{"budget": "9ktok", "waits_for_budget": True, **facts})

    def began() -> bool:
        return (paid.worktree / "src/half.py").exists() and is_signed(paid.runs[-1])

    return call, await halted(partial(paid.running, call), began, why)


async def _supervisor_killed(paid: StepLab) -> None:
    os.kill(supervisor_of(paid.runs[-1]), signal.SIGKILL)
    await wait_until(lambda: not paid.parts.host.runs.is_held("wo-1"))


def _tokens_noted(paid: StepLab) -> int:
    """Return the sum of the tokens in the notes for the history of costs."""
    return sum(note.use.tokens for _, note in paid.parts.host.cost_notes.take())


def _costs_told(paid: StepLab) -> list[CostNote]:
    """Return the notes for the history of costs, and remove them as the worker that reports them does."""
    notes = paid.parts.host.cost_notes
    told = notes.take()
    for path, _ in told:
        notes.forget(path)
    return [note for _, note in told]


@pytest.mark.parametrize("budget", ["", "9ktok"])
async def test_a_turn_that_no_attempt_comes_back_to_counts_in_the_history_of_costs(
    paid: StepLab, books: Books, budget: str
) -> None:
    """A pass notes the turn once under the key of its own attempt; a late attempt's note has the same key and use."""
    await _halted(paid, "worker_shutdown", budget=budget, project="shop", model="large")
    await _supervisor_killed(paid)
    if budget:
        assert await LeftTurns(paid.parts.host, books, left_seconds=0.0).look() == 1
    for _ in range(2):
        keep_what_was_left_alone(paid.parts.host)
    (left,) = _costs_told(paid)
    assert (left.project, left.order_id, left.step, left.agent) == ("shop", "wo-1", "implement_plan", "scripted")
    assert (left.model, left.asked_model, left.use.tokens) == ("large", "large", _TOKENS)
    keep_what_was_left_alone(paid.parts.host)
    assert _costs_told(paid) == []
    await paid.end_work(Step.IMPLEMENT_PLAN)
    (own,) = _costs_told(paid)
    assert (own.key, own.use) == (left.key, left.use)


@pytest.mark.parametrize(
    "whose", ["the step's", "the next attempt's", "its host's", "its host's, after the supervisor was killed"]
)
async def test_what_a_cancelled_agent_used_is_counted_once(paid: StepLab, books: Books, whose: str) -> None:
    """The process that ends the agent reads its use from the stream; a second end of the work order adds nothing."""
    if whose == "the step's":
        _, cancelled = await _halted(paid, "cancel_requested")
        assert cancelled.result().verdict is Verdict.CANCELLED
    elif whose == "the next attempt's":
        call, _ = await _halted(paid, "worker_shutdown")
        before = len(paid.heartbeats)  # the heartbeats name the run that the attempt follows
        adopted = await halted(
            partial(paid.running, call), lambda: any(paid.heartbeats[before:]), "cancel_requested"
        )
        assert (adopted.result().verdict, len(paid.runs)) == (Verdict.CANCELLED, 1)
    else:
        await _halted(paid, "worker_shutdown")
        if "killed" in whose:
            os.kill(supervisor_of(paid.runs[0]), signal.SIGKILL)
        assert (await paid.end_work(Step.IMPLEMENT_PLAN)).verdict is Verdict.CANCELLED
    assert (books.view().total.tokens, books.view().running) == (_TOKENS, 0)
    assert [*paid.parts.host.held_turns.places()] == []
    ((_, note),) = paid.parts.host.cost_notes.take()
    assert (note.use.tokens, note.model, note.step) == (_TOKENS, "fake-1", "implement_plan")
    paid.begun.clear()
    await paid.end_work(Step.IMPLEMENT_PLAN)
    assert books.view().total.tokens == _TOKENS
    assert _tokens_noted(paid) == _TOKENS


async def test_a_cancelled_finalizer_is_counted_beside_its_step(paid: StepLab, books: Books) -> None:
    """Step and finalizer are one turn each, and the use of each is counted once."""
    paid.agent("""
init()
turn('m2' if resumed else 'm1')
if resumed:
    write('.git/finalizing', '')
    time.sleep(300)
write('src/app.py', 'fixed')
result('no JSON')
""")
    await paid.open_to(Step.IMPLEMENT_PLAN)
    call = paid.call(Step.IMPLEMENT_PLAN, budget="9ktok", waits_for_budget=True)
    unread = await paid.running(call)
    assert books.view().total.tokens == _TOKENS
    cancelled = await halted(
        lambda within: paid.finalize(call, unread, within=within),
        (paid.worktree / ".git/finalizing").exists,
        "cancel_requested",
    )
    assert cancelled.result().verdict is Verdict.CANCELLED
    assert (books.view().total.tokens, books.view().total.turns) == (2 * _TOKENS, 2)
    assert _tokens_noted(paid) == 2 * _TOKENS


async def test_a_cancelled_summary_is_counted(paid: StepLab, books: Books) -> None:
    """The use of a lane's summary counts in both budgets when its pipeline is cancelled meanwhile."""
    await paid.open()
    paid.scenario()
    asked = {"budget": "9ktok", "pipeline_budget": "9ktok"}
    classified = await paid.run(Step.CLASSIFY_ISSUE, pipeline="pl-1", **asked)
    assert paid.workspace is not None
    assert classified.session_id is not None
    before = books.view("pipeline/pl-1").total.tokens
    paid.agent("init()\nturn('m1')\nwrite('.git/summary', '')\ntime.sleep(300)\n")
    call = SummariseCall(workspace=paid.workspace, pipeline="pl-1", session_id=classified.session_id)
    work = partial(paid.summarise, call.model_copy(update=asked))
    assert (await halted(work, (paid.worktree / ".git/summary").exists, "cancel_requested")).cancelled()
    assert books.view("pipeline/pl-1").total.tokens == before + _TOKENS
    assert (books.view("pipeline/pl-1").running, books.view().running) == (0, 0)


@contextmanager
def _record_not_written(run: Run) -> Iterator[bytes]:
    """Hold the lock of a run's supervisor whose record is not on disk yet, and yield the record."""
    record = (run.folder / "exit.json").read_bytes()
    with close_after(open_lock(run.folder / "lock")) as held:
        lock(held)
        (run.folder / "exit.json").unlink()
        yield record
    (run.folder / "exit.json").write_bytes(record)


@pytest.mark.parametrize("is_followed", [False, True])
async def test_what_an_agent_used_is_not_told_before_its_record_is_there(
    paid: StepLab, books: Books, *, is_followed: bool
) -> None:
    """Tokens come from the stream and minutes from the record: the pass waits for the record and counts both once."""
    if is_followed:
        await paid.open_to(Step.CLASSIFY_ISSUE, {})
        books.away = True
        await paid.run(Step.CLASSIFY_ISSUE, budget="9ktok", waits_for_budget=True)
        books.away = False
    else:
        await _halted(paid, "worker_shutdown")
        await end_all(paid.parts.host.runs, "wo-1", "cancelled")
    (run,) = paid.runs
    await wait_until(run.exit)
    teller = LeftTurns(paid.parts.host, books, left_seconds=0.0)
    with _record_not_written(run), pytest.raises(WorkspaceBusyError):
        await teller.look()
    assert (books.view().total.turns, books.view().running) == (0, 1)
    assert await teller.look() == 1
    assert (books.view().total.turns, books.view().running) == (1, 0)
    assert books.view().total.tokens > 0
    assert books.view().total.seconds > 0.0


@pytest.mark.release
async def test_a_record_that_a_disk_does_not_take_costs_no_cancel_and_no_count(
    paid: StepLab, books: Books
) -> None:
    """If the record is missing at a cancel, the cancel takes its rescue, and a later pass counts the use."""
    await _halted(paid, "worker_shutdown")
    (run,) = paid.runs
    await end_all(paid.parts.host.runs, "wo-1", "cancelled")
    await wait_until(run.exit)
    with _record_not_written(run) as record:

        async def supervise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            assert (await reader.readline()).startswith(b"end ")
            writer.write(b"ended " + record + b"\n")
            writer.close()

        (run.folder / "control.sock").unlink(missing_ok=True)
        with short_address(run.folder) as address:
            server = await asyncio.start_unix_server(supervise, address)
        async with server:
            ended = await paid.end_work(Step.IMPLEMENT_PLAN)
    assert (ended.verdict, len(ended.rescues)) == (Verdict.CANCELLED, 1)
    assert (books.view().total.turns, books.view().running) == (0, 1)
    assert await LeftTurns(paid.parts.host, books, left_seconds=0.0).look() == 1
    assert (books.view().total.tokens, books.view().running) == (_TOKENS, 0)


@pytest.mark.parametrize("told_between", [False, True])
async def test_what_an_agent_used_before_its_step_was_reset_is_counted(
    paid: StepLab, books: Books, *, told_between: bool
) -> None:
    """The attempt after a reset begins anew, and both agents' use is counted once, also with a pass in between."""
    call, ended = await _halted(paid, "reset", _HANGS_ONCE)
    with pytest.raises(ApplicationError, match="starts again"):
        ended.result()
    if told_between:
        assert await LeftTurns(paid.parts.host, books, left_seconds=0.0).look() == 1
        assert books.view().total.tokens == _TOKENS
    done = await paid.running(call)
    assert (done.verdict, done.agent_starts, done.usage.tokens) == (Verdict.DONE, 1, _TOKENS)
    assert (books.view().total.tokens, books.view().total.turns) == (2 * _TOKENS, 2)
    assert (books.view().running, _tokens_noted(paid)) == (0, 2 * _TOKENS)


async def test_what_an_agent_used_before_a_reset_is_counted_where_a_cancel_follows(
    paid: StepLab, books: Books
) -> None:
    """Without an attempt after the reset, the end of the work order reports the use."""
    _, ended = await _halted(paid, "reset")
    with pytest.raises(ApplicationError, match="starts again"):
        ended.result()
    await paid.end_work(Step.IMPLEMENT_PLAN)
    assert (books.view().total.tokens, books.view().running) == (_TOKENS, 0)
    assert _tokens_noted(paid) == _TOKENS
