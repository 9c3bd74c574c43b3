"""The summary of a lane's session, which Septet requests before the lane begins a new session."""

import asyncio
from dataclasses import dataclass, replace
from functools import partial

from temporalio import activity

from activities.host.frozen_inputs import read_frozen_inputs
from activities.host.host import Host
from activities.host.running_attempts import Heartbeats, take_fence
from activities.turns.guard import AttemptFailedError, WorkEndedError, guarding
from activities.turns.prepared_steps import PreparedTurn, by_agents, payer_of
from activities.turns.turn_budget import OverBudgetError, TurnBudget, run_turn
from septet.agents.clis.adapter import Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.turn_runs import TurnResult, TurnRuns
from septet.contracts.lanes import SessionSummary, SummariseCall
from septet.git.engine.place import Place
from septet.pipelines.notes import PROMPT, bounded_summary, no_summary
from septet.pipelines.store import store_of
from septet.repository_file import load_repository_settings
from septet.repository_settings import openings_of
from septet.system.threads import shielded_thread, stoppable_thread


@dataclass(frozen=True, slots=True)
class SummariseSession:
    """Requests the summary of a lane's session, and leaves the worktree unchanged."""

    host: Host

    @activity.defn(name="summarise_session")
    async def run(self, call: SummariseCall) -> SessionSummary:
        """Request the summary and write it to disk. Idempotent: a finished run is read again.

        Without a summary, the result holds the reason. Leaves `STATE/pipelines/<id>/summaries/<lane>.md` and the
        run's files.

        Raises:
            ApplicationError: The model API or the machine failed; a retry may return a summary.
        """
        async with self.host.working() as heartbeats:
            disk = self.host.threads.disk
            prepared_step = await shielded_thread(disk, self._prepare, call)
            accounts = self.host.accounts
            budget = TurnBudget(self.host, accounts, prepared_step) if accounts is not None else None
            try:
                async with guarding(self.host, prepared_step):
                    turn = await _run_turn(prepared_step, heartbeats, budget)
                    if budget is not None:
                        await budget.report(turn.outcome.model)
                    return await stoppable_thread(
                        disk, prepared_step.fence.halt.now, self._keep, call, prepared_step, turn
                    )
            except WorkEndedError as ended:
                if budget is not None:
                    await budget.report()
                raise asyncio.CancelledError(str(ended)) from ended
            except AttemptFailedError as failed:
                last = await shielded_thread(disk, TurnRuns(prepared_step.request).last_result)
                why, stop = failed.error.message, prepared_step.fence.halt.now
                leave = partial(self._leave_unsummarised, call, prepared_step, last, why)
                return await stoppable_thread(disk, stop, leave)

    def _prepare(self, call: SummariseCall) -> PreparedTurn:
        host, workspace = self.host, call.workspace
        place = host.place(workspace.place_id)
        settings = load_repository_settings(read_frozen_inputs(place).files.get)
        turn = Turn(
            prompt=PROMPT,
            worktree=place.worktree,
            resume_id=call.session_id,
            about_session=True,
            tools="none",
            model=call.model or settings.model or host.settings.model,
        )
        wall_seconds = min(call.limits.wall_seconds, 300.0)
        runtime = host.runtime
        fence = take_fence(runtime.runs, workspace.place_id, workspace.visit)
        request = TurnRequest(
            key=fence.key,
            order_id=workspace.place_id,
            number=0,
            step=call.name,
            adapter=adapter_for(workspace.agent),
            turn=turn,
            limits=call.limits.model_copy(update={"wall_seconds": wall_seconds}),
            runtime=runtime,
            objects=place.objects,
            payer=payer_of(workspace, call.name, call.project, call.model),
        )
        own, _ = by_agents(workspace, request, replace(turn, model=None) if workspace.fallback_agent else None)
        find_openings = partial(openings_of, host.settings, call, settings)
        return PreparedTurn(workspace, place, own, fence, find_openings=find_openings)

    def _keep(self, call: SummariseCall, prepared_step: PreparedTurn, turn: TurnResult) -> SessionSummary:
        """Write the turn's summary to disk; without a summary, return the reason."""
        summary = bounded_summary(turn.outcome.text or "") if turn.outcome.has_answer else ""
        if not summary:
            why = turn.outcome.message or "the agent's answer was empty."
            return self._leave_unsummarised(call, prepared_step, turn, why)
        with prepared_step.fence.lease.hold():
            self._undo(call, prepared_step.place)
            store_of(self.host.state, call.pipeline).keep_summary(call.workspace.place_id, summary)
        return SessionSummary(kept_bytes=len(summary.encode()), model=turn.outcome.model, usage=turn.usage)

    def _leave_unsummarised(
        self, call: SummariseCall, prepared_step: PreparedTurn, turn: TurnResult | None, why: str
    ) -> SessionSummary:
        with prepared_step.fence.lease.hold():
            self._undo(call, prepared_step.place)
        if turn is None:
            return SessionSummary(warning=no_summary(why))
        return SessionSummary(warning=no_summary(why), model=turn.outcome.model, usage=turn.usage)

    def _undo(self, call: SummariseCall, place: Place) -> None:
        """Undo the agent's changes to the worktree: some CLIs cannot start without tools that write."""
        checkpoint = call.workspace.checkpoint
        if checkpoint and self.host.snapshots.differs(place, checkpoint):
            self.host.snapshots.return_to(
                place, checkpoint, "what the agent changed when it was asked for a summary", call.name
            )


async def _run_turn(prepared_step: PreparedTurn, heartbeats: Heartbeats, budget: TurnBudget | None) -> TurnResult:
    """Run the turn; if a budget has no room, fail at once."""
    try:
        return await run_turn(
            prepared_step.request,
            lease=prepared_step.fence.lease,
            on_progress=heartbeats.progress.append,
            leave_work=_leave_worktree,
            budget=budget,
        )
    except OverBudgetError as refusal:
        raise AttemptFailedError(refusal) from refusal


async def _leave_worktree() -> None:
    """Do nothing before a new agent starts: a summary, unlike a step, does not need a restored worktree."""
