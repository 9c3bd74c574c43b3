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
    use = TurnRuns(turn.request).spending()
    if use != Spending() or completes:
        host.cost_notes.note(_note_of(turn, use, model, completes=completes))


def _note_of(turn: PreparedTurn, use: Spending, model: str | None, *, completes: bool) -> CostNote:
    call = turn.call if isinstance(turn, PreparedStep) else None
    key, year_and_week = turn.request.key, datetime.now(UTC).isocalendar()
    digest = blake2b(turn_key(key.workflow_id, key.run_id, key.activity_id).encode(), digest_size=_KEY_BYTES)
    return CostNote(
        project=(call.project if call is not None else "") or turn.workspace.project,
        order_id=turn.workspace.work_order_id,
        key=digest.hexdigest(),
        step=call.name if call is not None else turn.request.step,
        agent=turn.request.adapter.name,
        model=model or turn.request.turn.model or "",
        asked_model=(call.model if call is not None else None) or "",
        use=use,
        week=f"{year_and_week.year}-W{year_and_week.week:02}",
        completes=completes,
        plan_bytes=(call.progress.plan_bytes if call is not None else None) or 0,
    )
