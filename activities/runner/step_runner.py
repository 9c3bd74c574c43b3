"""The sequence that all seven steps share: prompt, agent, outcome, answer, proof, checkpoint."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from activities.host.cancellation import CANCELLED
from activities.host.host import Host
from activities.outgoing.progress import (
    note_progress,
    post_plan,
    report_to_tracker,
    set_stage_label,
    waits_with_plan,
)
from activities.runner.judgement import Completion, Judge, judge_turn, read_answer
from activities.runner.leftovers import finish_return
from activities.runner.taken_over import Pushed, find_pushed, judge_pushed
from activities.turns.guard import end_agents_of
from activities.turns.prepared_steps import PreparedStep, prepare_end, prepare_finalizer, prepare_step
from activities.turns.results import add_turn, add_warnings, begin_again, begin_result, with_reasons
from activities.turns.step_attempt import StepAttempt, attempting
from activities.turns.turn_budget import OverBudgetError
from activities.turns.turn_costs import note_costs
from septet.agents.runs.logs import recording_refusals
from septet.agents.turns.turn_runs import TurnResult, TurnRuns
from septet.agents.turns.warm import end_warm
from septet.answers.ladder import AnswerError
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import EndCall, FinalizeCall, StepCall, StepResult
from septet.errors import AgentApiError, AgentError, AgentGaveUpError, AgentLimitError
from septet.git.engine.place import Place
from septet.git.evidence.evidence import gather
from septet.system.threads import shielded_thread, stoppable_thread


def judge_finalizer(host: Host, step: PreparedStep, finalizing: FinalizeCall, turn: TurnResult) -> StepResult:
    """Complete a step's result with the finalizer's answer, while holding the writer's lock.

    Raises:
        SupersededError, HaltedError: A later attempt has begun, or this attempt was cancelled.
        WorkspaceBusyError: Another process holds the writer's lock.
    """
    with recording_refusals(step.call, turn.run), step.fence.lease.hold() as writer_lock:
        try:
            answer = read_answer(host, step.call, turn)
        except AnswerError as error:
            return _leave_unanswered(host, step, finalizing, turn, error.reasons)
        result = add_turn(begin_again(finalizing.result), turn)
        is_plan = step.call.step is Step.FIND_PLAN_FILE
        if not (is_plan and finish_return(host, step, turn.run.name)):
            result = _without_edits(host, step, result)
        evidence = gather(step.place, step.began_at)
        guests = partial(host.guests, step.place, turn.run.checks, writer_lock)
        judge = Judge(host, step, evidence, guests, turn.run.name)
        return judge.judge(result.model_copy(update={"recovered_by": "finalizer"}), answer)


def leave_failed_finalizer(
    host: Host, step: PreparedStep, finalizing: FinalizeCall, turn: TurnResult | None, error: AgentError
) -> StepResult:
    """Return the result of a step whose finalizer failed, while holding the writer's lock.

    If the model API refuses a session, the step's second try begins a new session.

    Raises:
        SupersededError: A later attempt has begun.
        WorkspaceBusyError: Another process holds the writer's lock.
    """
    with step.fence.lease.hold():
        if isinstance(error, AgentApiError):
            without_session = finalizing.result.model_copy(update={"session_id": None})
            finalizing = finalizing.model_copy(update={"attempt": 2, "result": without_session})
        return _leave_unanswered(host, step, finalizing, turn, (error.message,))


def _leave_unanswered(
    host: Host, step: PreparedStep, finalizing: FinalizeCall, turn: TurnResult | None, reasons: tuple[str, ...]
) -> StepResult:
    """Return the result of a step without an answer; one more request for the answer may follow."""
    result = _without_edits(host, step, add_turn(begin_again(finalizing.result), turn))
    completion = Completion(host, step)
    if finalizing.attempt > 1:
        return completion.reject(result, Verdict.UNPARSED, reasons)
    return completion.complete(with_reasons(result, Verdict.UNPARSED, reasons), finalizing.result.checkpoint)


def _without_edits(host: Host, step: PreparedStep, result: StepResult) -> StepResult:
    """Undo the finalizer's changes to the worktree; if it made changes, add a warning to the result."""
    place, start = step.place, step.starts_from
    if not start or not host.snapshots.differs(place, start):
        return result
    rescue = host.snapshots.return_to(place, start, "what the finalizer changed", step.call.name)
    kept = rescue.snapshot if rescue else "no snapshot, for nothing was left of it"
    return add_warnings(
        result, f"The finalizer changed the worktree. Its change was undone and is kept in {kept}."
    )


def leave_over_budget(
    host: Host, prepared_step: PreparedStep, refusal: OverBudgetError, unread: StepResult | None = None
) -> StepResult:
    """Take a checkpoint of the work, and return a result that names the spent budget.

    Args:
        unread: The step's result without a readable answer, if a finalizer is over budget.

    Raises:
        OverBudgetError: The workflow does not wait for budgets, or too many work orders wait for the account's
            signal. Temporal retries the activity.
        SupersededError, HaltedError: A later attempt has begun, or this attempt was cancelled.
        WorkspaceBusyError: Another process holds the writer's lock.
    """
    call = prepared_step.call
    if not (call.waits_for_budget and refusal.is_listed):
        raise refusal
    turn = TurnRuns(prepared_step.request).last_result()
    if unread is not None:
        result, checkpoint = add_turn(begin_again(unread), turn), unread.checkpoint
    elif turn is None:
        result, checkpoint = begin_result(call, None, ()), None
    else:
        with prepared_step.fence.lease.hold():
            changes = gather(prepared_step.place, prepared_step.began_at).files_changed
            result = begin_result(call, turn, changes)
            snapshot, _ = host.snapshots.checkpoint_after_guest(
                prepared_step.place, "a budget is used up", call.name
            )
            checkpoint = snapshot.name if snapshot is not None else None
    result = with_reasons(result, Verdict.OVER_BUDGET, (refusal.message,))
    return result.model_copy(update={"checkpoint": checkpoint, "budget_wait": refusal.wait})


Reporter = Callable[[Host, Place, StepCall, StepResult], tuple[str, ...]]
"""A function that reports on the forge or the tracker how a step ended, and returns failures as warnings."""


@dataclass(frozen=True, slots=True)
class StepRunner:
    """Runs steps on a host."""

    host: Host

    async def run(self, call: StepCall) -> StepResult:
        """Run the agent, read and prove its answer, and take a checkpoint.

        Raises:
            ApplicationError: The step failed; the details hold the remedy and the known facts of the step.
        """
        async with attempting(self.host, prepare_step, call) as attempt:
            prepared_step = attempt.prepared_step
            pushed = await self._find_pushed(attempt)
            try:
                turn = None if pushed is not None else await attempt.run_turn(begins_step=True)
            except OverBudgetError as spent:
                await self._leave(attempt, partial(leave_over_budget, self.host, prepared_step, spent))
            else:
                if turn is not None:
                    await self._judge(attempt, turn, partial(judge_turn, self.host, prepared_step, turn))
                elif pushed is not None:
                    await self._leave(attempt, partial(judge_pushed, self.host, prepared_step, pushed))
            if attempt.warnings:
                attempt.result = add_warnings(attempt.result, *attempt.warnings)
            attempt.result = await self._report(prepared_step, attempt.result)
            await self._end_work_order(prepared_step, attempt.result)
        return attempt.result

    async def finalize(self, finalizing: FinalizeCall) -> StepResult:
        """Request the step's answer as JSON from the same session, and complete the step's result.

        Raises:
            ApplicationError: The request failed; the details hold the remedy and the known facts of the step.
        """
        async with attempting(self.host, prepare_finalizer, finalizing) as attempt:
            prepared_step = attempt.prepared_step
            try:
                turn = await attempt.run_turn()
            except (AgentGaveUpError, AgentLimitError, AgentApiError) as error:
                if isinstance(error, AgentApiError) and not error.may_be_of_session:
                    raise
                last = await shielded_thread(self.host.threads.disk, TurnRuns(prepared_step.request).last_result)
                leaving = partial(leave_failed_finalizer, self.host, prepared_step, finalizing, last, error)
                await self._leave(attempt, leaving)
            except OverBudgetError as spent:
                leaving = partial(leave_over_budget, self.host, prepared_step, spent, finalizing.result)
                await self._leave(attempt, leaving)
            else:
                judging = partial(judge_finalizer, self.host, prepared_step, finalizing, turn)
                await self._judge(attempt, turn, judging)
            attempt.result = await self._report(prepared_step, attempt.result)
            await self._end_work_order(prepared_step, attempt.result)
        return attempt.result

    async def end(self, call: EndCall) -> StepResult:
        """End the agents of a cancelled work order, because the cancelled step has not ended them.

        Raises:
            ApplicationError: The workspace is not here, or the agent could not be ended.
        """
        async with self.host.working() as heartbeats:
            runs = self.host.runs
            # Before all else, so that agents end even if a full disk keeps this attempt from being recorded.
            await end_agents_of(runs, call.workspace)
            prepared_step = await shielded_thread(self.host.threads.disk, prepare_end, self.host, call)
            prepared_step.fence.lease.check()
            await end_agents_of(runs, call.workspace)
            return await StepAttempt(self.host, prepared_step, heartbeats).end(Verdict.CANCELLED, CANCELLED)

    async def _find_pushed(self, attempt: StepAttempt) -> Pushed | None:
        """Return the step's work if it was pushed before the host was restored from a backup; else `None`."""
        step = attempt.prepared_step
        if not step.call.progress.branch_name:  # then nothing was pushed
            return None
        network, stop = self.host.threads.network, step.fence.halt.now
        pushed = await stoppable_thread(network, stop, find_pushed, self.host, step)
        if pushed is not None and attempt.budget is not None:
            await attempt.budget.report()
        return pushed

    async def _judge(self, attempt: StepAttempt, turn: TurnResult, judging: Callable[[], StepResult]) -> None:
        """Set the attempt's result to the return value of `judging`; meanwhile report the use to the budgets."""
        async with nullcontext() if attempt.budget is None else attempt.budget.reporting(turn.outcome.model):
            await self._leave(attempt, judging)

    async def _leave(self, attempt: StepAttempt, leaving: Callable[[], StepResult]) -> None:
        """Set the attempt's result to the return value of `leaving`, run in a thread; a cancel stops `leaving`."""
        stop = attempt.prepared_step.fence.halt.now
        attempt.result = await stoppable_thread(self.host.threads.network, stop, leaving)

    async def _report(self, prepared_step: PreparedStep, result: StepResult) -> StepResult:
        """Report the step and a waiting plan on the issue, if settings want reports; add failures as warnings."""
        network, stop = self.host.threads.network, prepared_step.fence.halt.now
        for report in _reporters(prepared_step, result):
            reporting = partial(report, self.host, prepared_step.place, prepared_step.call, result)
            result = add_warnings(result, *await stoppable_thread(network, stop, reporting))
        return result

    async def _end_work_order(self, prepared_step: PreparedStep, result: StepResult) -> None:
        """After the last step, record that the work order's costs are complete; end its warm process, if any."""
        call = prepared_step.call
        if call.step is not Step.CREATE_PULL_REQUEST or call.reads or result.verdict is not Verdict.DONE:
            return
        if self.host.accounts is not None:
            await note_costs(self.host, prepared_step, result.model, completes=True)
        if call.shares_session and not call.pipeline:
            runs, place_id = self.host.runs, prepared_step.workspace.place_id
            await shielded_thread(self.host.threads.disk, end_warm, runs, place_id)


def _reporters(prepared_step: PreparedStep, result: StepResult) -> list[Reporter]:
    """Return the functions that report this step, as the repository's settings and the work order require."""
    call, settings = prepared_step.call, prepared_step.repository_settings
    if result.verdict is Verdict.OVER_BUDGET or result.unread or call.reads:
        return []
    reporters: list[Reporter] = []
    if settings.progress_comment and call.rework is None:
        reporters.append(note_progress)
    if settings.stage_labels and call.rework is None:
        reporters.append(set_stage_label)
    if call.step is Step.FIND_PLAN_FILE and waits_with_plan(call, result, is_asked_for=settings.progress_comment):
        reporters.append(post_plan)
    if call.workspace.tracker is not None and call.rework is None:
        reporters.append(report_to_tracker)
    return reporters
