"""Record a turn's use on disk, for the history of its project's costs."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b

import structlog

from activities.host.host import Host
from activities.turns.prepared_steps import PreparedStep, PreparedTurn
from septet.agents.clis.adapter import Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.runs.folders import Run
from septet.agents.runs.records import Payer, RunKey
from septet.agents.runs.usage import read_usage, spending_by_worker, spending_of
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.turn_runs import TurnRuns
from septet.budgets.turn_notes import turn_key
from septet.contracts.amounts import Spending
from septet.contracts.costs import CostNote
from septet.contracts.order import Timeouts
from septet.errors import WorkspaceBusyError

_log = structlog.get_logger()


async def note_costs(
    host: Host,
    turn: PreparedTurn,
    model: str | None = None,
    *,
    completes: bool = False,
    runs: list[Run] | None = None,
) -> None:
    """Record the use of a turn's agents until now; if the disk fails, only the history of costs lacks the turn.

    Args:
        model: The model, as the agent's CLI names it, if known.
        completes: Whether the work order has its pull request after this turn.
    """
    try:
        await asyncio.to_thread(_note, host, turn, model, runs, completes=completes)
    except OSError as error:
        _log.warning("cost_not_noted", step=turn.request.step, error=str(error))


def note_unread_turns(host: Host, place_id: str) -> None:
    """Record the costs of all turns of a workspace whose usage was not read yet.

    The caller must hold the writer's lock. A turn that is recorded again counts once.

    Raises:
        SeptetError: The supervisor of a run lives and does not write its record, or the runner does not answer.
        OSError: A file cannot be read or written.
    """
    runs = host.runs.lately(place_id)
    for key in dict.fromkeys(run.record.key for run in runs if run.record is not None and is_unread(run)):
        conclude_left_turn(host, place_id, key)


def is_unread(run: Run) -> bool:
    """Return whether a run's usage was not read yet, although a project pays for the run."""
    return run.has_started and run.record is not None and run.record.payer is not None and read_usage(run) is None


def conclude_left_turn(host: Host, place_id: str, key: RunKey) -> Spending:
    """Record the costs of a turn that no attempt handles, and return its use; zero if no run is left.

    The caller must hold the writer's lock.

    Raises:
        SeptetError: The supervisor of a run lives, and does not write its record; or the runner does not answer.
        OSError: A file cannot be read or written.
    """
    runs = host.runs.lately(place_id)
    records = [run.record for run in runs if run.record is not None and run.record.key == key]
    if not records:
        return Spending()
    request = TurnRequest(
        key=key,
        order_id=place_id,
        number=0,
        step=records[-1].step,
        adapter=adapter_for(records[-1].agent),
        turn=Turn(prompt="", worktree=host.state.workspaces),
        limits=Timeouts(),
        runtime=host.runtime,
    )
    paid = TurnRuns(request).conclude()
    models = {(record.agent, record.login): record.model for record in records}
    if (payer := records[-1].payer) is not None:
        for worker, use in spending_by_worker(paid).items():
            note = _note_of(key, payer, worker, use, models[worker])
            noted = host.cost_notes.find(note.key) or note  # a note holds more than a run's record
            if use != Spending():
                host.cost_notes.note(noted.model_copy(update={"use": use}))
    return spending_of(paid)


def _note(host: Host, turn: PreparedTurn, model: str | None, runs: list[Run] | None, *, completes: bool) -> None:
    """Write a note for each pair of agent and login of the turn's `runs`; `model` is the last agent's model."""
    request, payer = turn.request, turn.request.payer
    if payer is None:
        return
    uses = spending_by_worker(TurnRuns(request).paid_runs() if runs is None else runs)
    last = [*uses][-1:]
    if uses and model is None:
        with suppress(WorkspaceBusyError):  # the agent may have been stopped before its result
            result = TurnRuns(request).last_result()
            model = result.outcome.model if result is not None else None
    own = (payer.agent, "")
    if completes and not uses:
        uses, last = {own: Spending()}, [own]
    plan_bytes = (turn.call.progress.plan_bytes if isinstance(turn, PreparedStep) else None) or 0
    for worker, use in uses.items():
        is_last = worker in last
        if use != Spending() or (completes and is_last):
            asked = request.turn.model if worker[0] == request.adapter.name else None
            note = _note_of(request.key, payer, worker, use, (model if is_last else None) or asked or "")
            update = {"completes": completes and is_last, "plan_bytes": plan_bytes}
            host.cost_notes.note(note.model_copy(update=update))


def _note_of(key: RunKey, payer: Payer, worker: tuple[str, str], use: Spending, model: str) -> CostNote:
    year_and_week = datetime.now(UTC).isocalendar()
    agent, login = worker
    turn_name = turn_key(key.workflow_id, key.run_id, key.activity_id)
    if worker != (payer.agent, ""):
        turn_name = f"{turn_name}\0{agent}\0{login}"
    return CostNote(
        project=payer.project,
        order_id=payer.order_id,
        key=blake2b(turn_name.encode(), digest_size=8).hexdigest(),
        step=payer.step,
        agent=agent,
        login=login,
        model=model,
        asked_model=payer.asked_model,
        use=use,
        week=f"{year_and_week.year}-W{year_and_week.week:02}",
        of_pipeline=payer.of_pipeline,
    )
