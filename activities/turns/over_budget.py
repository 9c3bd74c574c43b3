"""A step whose budget is used up: its work and its session are kept until the budget is open again."""

from activities.host.host import Host
from activities.turns.prepared_steps import PreparedStep
from activities.turns.results import add_turn, begin_again, begin_result, with_reasons
from activities.turns.turn_budget import OverBudgetError
from septet.agents.turns.turn_runs import TurnRuns
from septet.contracts.names import Verdict
from septet.contracts.steps import StepResult
from septet.git.evidence.evidence import gather


def leave_over_budget(
    host: Host, prepared_step: PreparedStep, refusal: OverBudgetError, unread: StepResult | None = None
) -> StepResult:
    """Keep a checkpoint of the work, and return a result that names the budget that is used up.

    Args:
        host: The host.
        prepared_step: The step, or its finalizer.
        refusal: The error that names the budget.
        unread: The result of the step if a finalizer is over budget.

    Raises:
        OverBudgetError: The workflow does not wait for budgets, or no account would notify it: Temporal retries
            the activity.
        SupersededError, HaltedError: A later attempt has begun, or this one was cancelled.
        WorkspaceBusyError: Somebody else holds the writer's lock.
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
