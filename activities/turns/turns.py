"""Run a turn of an agent within its budgets: the only module that starts agents for work orders."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext

from activities.turns.turn_budget import TurnBudget
from septet.agents.runs.lease import Lease
from septet.agents.turns.follow import TurnProgress
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.turn_attempt import Adopt, NeedsStart, TurnAttempt
from septet.agents.turns.turn_runs import TurnResult


async def carry_out(
    request: TurnRequest,
    *,
    lease: Lease,
    on_progress: Callable[[TurnProgress], None],
    leave_work: Callable[[], Awaitable[object]],
    budget: TurnBudget | None = None,
) -> TurnResult:
    """Run a turn to its outcome, over as many attempts as needed, with as few agents as possible.

    A cancel leaves the agent running, for the next attempt to adopt; `end_agent` ends it.

    Args:
        request: The turn's prompt, agent and limits.
        lease: This attempt's right to start, to end and to write.
        on_progress: Called at the start and every half second; its exceptions are raised.
        leave_work: Awaited before an agent starts anew in a worktree that another agent has left as it is: take a
            rescue and return to the step's checkpoint.
        budget: Reserves room before each start of an agent, by what the turn has used so far; agent and login
            may change between starts. Gets a report of what the turn used if the turn fails.

    Raises:
        OverBudgetError: A budget has no room.
        SeptetError, OSError: As `TurnAttempt` raises them.
    """
    attempt = TurnAttempt(request, lease, on_progress)
    async with nullcontext() if budget is None else budget.told_of_failure():
        while True:
            decision = await attempt.decide()
            if isinstance(decision, TurnResult):
                return decision
            if isinstance(decision, Adopt):
                result = await attempt.adopt(decision)
            else:
                result = await _start(attempt, decision, leave_work, budget)
            if result is not None:
                return result


async def _start(
    attempt: TurnAttempt,
    needs: NeedsStart,
    leave_work: Callable[[], Awaitable[object]],
    budget: TurnBudget | None,
) -> TurnResult | None:
    """Reserve room and start an agent; the writer's lock is held until the agent's supervisor has it."""
    with needs:
        if needs.leaves_work:
            await leave_work()
        request = attempt.request if budget is None else await budget.reserve(needs.so_far)
        if needs.changes_agent(request):
            await leave_work()
        return await attempt.start(needs, request)
