"""The common sequence of all seven steps: prompt, agent, outcome, answer, proof, checkpoint."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from activities.completion.finalizing import judge_finalizer, leave_failed_finalizer
from activities.completion.judgement import judge_turn
from activities.completion.taken_over import Pushed, find_pushed, judge_pushed
from activities.host.cancellation import CANCELLED
from activities.host.host import Host
from activities.notifications.issue_progress import note_progress, set_stage_label
from activities.notifications.plan_comment import post_plan, waits_with_plan
from activities.notifications.tracker_progress import report_to_tracker
from activities.turns.guard import end_agents_of
from activities.turns.prepared_steps import PreparedStep, prepare_end, prepare_finalizer, prepare_step
from activities.turns.results import add_turn, add_warnings, begin_again, begin_result, with_reasons
from activities.turns.step_attempt import StepAttempt, attempting
from activities.turns.turn_budget import OverBudgetError
from activities.turns.turn_costs import note_costs
from septet.agents.turns.turn_runs import TurnResult, TurnRuns
from septet.agents.turns.warm import end_warm
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import EndCall, FinalizeCall, StepCall, StepResult
from septet.errors import AgentApiError, AgentGaveUpError, AgentLimitError
from septet.git.engine.place import Place
from septet.git.evidence.evidence import gather
from septet.system.threads import shielded_thread, stoppable_thread


def leave_over_budget(
    host: Host, prepared_step: PreparedStep, refusal: OverBudgetError, unread: StepResult | None = None
) -> StepResult:
    """Take a checkpoint of the work, and return a result that names the spent budget.

    Args:
        host: The host.
        prepared_step: The step, or its finalizer.
        refusal: The error that names the budget.
        unread: The step's result without a readable answer, if a finalizer is over budget.

    Raises:
        OverBudgetError: The workflow does not wait for budgets, or no account would notify it: Temporal retries
            the activity.
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
"""Reports to the forge or the tracker how a step ended, and returns failures as warnings."""


@dataclass(frozen=True, slots=True)
class StepRunner:
    """Runs steps on a host; steps differ only in their command and their proof."""

    host: Host

    async def run(self, call: StepCall) -> StepResult:
        """Run the agent, read its answer, check the answer against the evidence, and take a checkpoint.

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
        """Request the answer alone from the step's session, and complete the step's result with it.

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
        """End the agents of a cancelled work order whose step could not end them itself.

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
        """Return the work that the step pushed before a restore, and report its agent's use until the backup."""
        step = attempt.prepared_step
        if not step.call.progress.branch_name:  # then nothing was pushed
            return None
        network, stop = self.host.threads.network, step.fence.halt.now
        pushed = await stoppable_thread(network, stop, find_pushed, self.host, step)
        if pushed is not None and attempt.budget is not None:
            await attempt.budget.report()
        return pushed

    async def _judge(self, attempt: StepAttempt, turn: TurnResult, judging: Callable[[], StepResult]) -> None:
        """Judge the step by its turn's result, and meanwhile report the turn's use to the accounts."""
        async with nullcontext() if attempt.budget is None else attempt.budget.reporting(turn.outcome.model):
            await self._leave(attempt, judging)

    async def _leave(self, attempt: StepAttempt, leaving: Callable[[], StepResult]) -> None:
        """Set the attempt's result from blocking work on disk and with remotes; a cancel stops the work."""
        stop = attempt.prepared_step.fence.halt.now
        attempt.result = await stoppable_thread(self.host.threads.network, stop, leaving)

    async def _report(self, prepared_step: PreparedStep, result: StepResult) -> StepResult:
        """Report to the issue how the step ended, and a plan that waits for approval, if the settings say so."""
        for report in _reporters(prepared_step, result):
            warnings = await stoppable_thread(
                self.host.threads.network,
                prepared_step.fence.halt.now,
                report,
                self.host,
                prepared_step.place,
                prepared_step.call,
                result,
            )
            result = add_warnings(result, *warnings)
        return result

    async def _end_work_order(self, prepared_step: PreparedStep, result: StepResult) -> None:
        """After the last step, record the work order's costs as complete, and end an agent that still waits."""
        call = prepared_step.call
        if call.step is not Step.CREATE_PULL_REQUEST or call.reads or result.verdict is not Verdict.DONE:
            return
        if self.host.accounts is not None:
            await note_costs(self.host, prepared_step, result.model, completes=True)
        if call.shares_session and not call.pipeline:
            runs, place_id = self.host.runs, prepared_step.workspace.place_id
            await shielded_thread(self.host.threads.disk, end_warm, runs, place_id)


def _reporters(prepared_step: PreparedStep, result: StepResult) -> list[Reporter]:
    """Return the functions that report the step to the issue, by the repository's settings and the work order."""
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
