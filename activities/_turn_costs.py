"""What a turn has used, noted on disk for the history of its project's costs: budgets or not."""

import asyncio
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final

import structlog

from activities._prepared_steps import PreparedStep, PreparedTurn
from activities.host import Host
from septet.agents.turns.turn_runs import TurnRuns
from septet.budgets.held_turns import turn_key
from septet.contracts.amounts import Spending
from septet.contracts.costs import CostNote

_KEY_BYTES: Final = 8

_log = structlog.get_logger()


async def note_costs(host: Host, turn: PreparedTurn, model: str | None = None, *, completes: bool = False) -> None:
    """Note what a turn's agents used up to now; a disk that refuses costs the history a turn, and no work.

    Args:
        host: Where it runs.
        turn: The turn.
        model: As its CLI names it, where that is known.
        completes: Whether its work order has its pull request with it.
    """
    try:
        await asyncio.to_thread(_note, host, turn, model, completes=completes)
    except OSError as error:
        _log.warning("cost_not_noted", step=turn.request.step, error=str(error))


def _note(host: Host, turn: PreparedTurn, model: str | None, *, completes: bool) -> None:
    """Write a note for each agent and login that worked on the turn; the last one's CLI has named its model."""
    uses = TurnRuns(turn.request).spending_by_worker()
    last = [*uses][-1:]
    own = (turn.workspace.agent, "")
    if completes and not uses:
        uses, last = {own: Spending()}, [own]
    for worker, use in uses.items():
        is_last = worker in last
        if use != Spending() or (completes and is_last):
            note = _note_of(turn, worker, use, model if is_last else None)
            host.cost_notes.note(note.model_copy(update={"completes": completes and is_last}))


def _note_of(turn: PreparedTurn, worker: tuple[str, str], use: Spending, model: str | None) -> CostNote:
    call = turn.call if isinstance(turn, PreparedStep) else None
    key, year_and_week = turn.request.key, datetime.now(UTC).isocalendar()
    agent, login = worker
    turn_name = turn_key(key.workflow_id, key.run_id, key.activity_id)
    if worker != (turn.workspace.agent, ""):
        turn_name = f"{turn_name}\0{agent}\0{login}"
    asked = turn.request.turn.model if agent == turn.request.adapter.name else None
    return CostNote(
        project=(call.project if call is not None else "") or turn.workspace.project,
        order_id=turn.workspace.work_order_id,
        key=blake2b(turn_name.encode(), digest_size=_KEY_BYTES).hexdigest(),
        step=call.name if call is not None else turn.request.step,
        agent=agent,
        login=login,
        model=model or asked or "",
        asked_model=(call.model if call is not None else None) or "",
        use=use,
        week=f"{year_and_week.year}-W{year_and_week.week:02}",
        plan_bytes=(call.progress.plan_bytes if call is not None else None) or 0,
        of_pipeline=bool(turn.workspace.lane),
    )
