"""The summary turn: ask a lane's session, before it is left, for what the issues after it need."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Final

from temporalio import activity

from activities._agents_end import end_agents_of
from activities._ends import end_of_the_work
from activities._failures import failure, failures_told, is_tried_again
from activities._fence import Fence, own_key, own_lease
from activities._heartbeats import heartbeating, shielded_thread
from activities._paused import leave_paused_or_reset
from activities._room import Host, read_papers
from septet.agents.clis.adapter import Turn
from septet.agents.clis.endings import CANCELLED
from septet.agents.clis.registry import adapter_for
from septet.agents.turns.carry_out import TurnResult, carry_out, last_result
from septet.agents.turns.launch import TurnRequest
from septet.contracts.facts import Usage
from septet.contracts.lanes import SessionSummary, SummariseCall
from septet.errors import SeptetError, SupersededError
from septet.pipelines.store import store_of
from septet.pipelines.summary import PROMPT, bounded_summary, no_summary
from septet.repository_settings import load_repository_settings
from septet.system.disk import diagnosed

_STEP: Final = "summarise_session"
_WALL_SECONDS: Final = 300.0
_NO_WORDS: Final = "the agent's answer was empty."
_UNDONE: Final = "what the agent changed when it was asked for a summary"


@dataclass(frozen=True, slots=True)
class SummariseSession:
    """It leaves a summary on disk, and the worktree as it was."""

    host: Host

    @activity.defn(name="summarise_session")
    async def run(self, asked: SummariseCall) -> SessionSummary:
        """Ask for the summary and keep it. Idempotent: a finished run is read again.

        Where there is no summary to be had the result says why. Leaves `STATE/pipelines/<id>/summaries/<lane>.md`
        and the run's files.

        Raises:
            ApplicationError: The model API or the machine may give one later.
        """
        with failures_told(self.host.state.root):
            async with heartbeating() as pulse:
                request, gate = await shielded_thread(self._prepared, asked)
                try:
                    carried = await carry_out(
                        request, lease=gate.lease, on_progress=pulse.follow, before_rerun=_nothing
                    )
                    return await gate.as_writer(partial(self._kept, asked, carried))
                except asyncio.CancelledError:
                    if await end_of_the_work() is None:
                        await leave_paused_or_reset(request)
                    else:
                        gate.lease.check()
                        await end_agents_of(self.host.means.runs, asked.workspace, CANCELLED)
                    raise
                except SupersededError:
                    raise
                except (SeptetError, OSError) as caught:
                    error = diagnosed(caught, self.host.state.root)
                    if is_tried_again(error):
                        raise failure(error) from caught
                    last = await shielded_thread(last_result, request)
                    return await gate.as_writer(partial(self._not_kept, asked, last, error.message))

    def _prepared(self, asked: SummariseCall) -> tuple[TurnRequest, Fence]:
        host, workspace = self.host, asked.workspace
        place = host.place(workspace.place_id)
        turn = Turn(
            prompt=PROMPT,
            worktree=place.worktree,
            resume_id=asked.session_id,
            about_session=True,
            tools="none",
            model=asked.model or host.settings.model or load_repository_settings(read_papers(place).read).model,
        )
        wall_seconds = min(asked.limits.wall_seconds, _WALL_SECONDS)
        request = TurnRequest(
            key=own_key(),
            order_id=workspace.place_id,
            number=0,
            step=_STEP,
            adapter=adapter_for(workspace.agent),
            turn=turn,
            limits=asked.limits.model_copy(update={"wall_seconds": wall_seconds}),
            means=host.means,
        )
        return request, Fence(own_lease(host.means.runs, workspace.place_id, workspace.visit))

    def _kept(self, asked: SummariseCall, carried: TurnResult) -> SessionSummary:
        """Keep the summary, if there is one."""
        summary = bounded_summary(carried.outcome.text or "") if carried.outcome.answered else ""
        if not summary:
            return self._not_kept(asked, carried, carried.outcome.message or _NO_WORDS)
        self._undo(asked)
        store_of(self.host.state, asked.pipeline).keep_summary(asked.workspace.place_id, summary)
        return SessionSummary(kept_bytes=len(summary.encode()), usage=carried.usage)

    def _not_kept(self, asked: SummariseCall, carried: TurnResult | None, why: str) -> SessionSummary:
        self._undo(asked)
        return SessionSummary(warning=no_summary(why), usage=carried.usage if carried is not None else Usage())

    def _undo(self, asked: SummariseCall) -> None:
        """Return the worktree to what it was: not every CLI can be started without tools."""
        place, checkpoint = self.host.place(asked.workspace.place_id), asked.workspace.checkpoint
        if checkpoint and self.host.differs(place, checkpoint):
            self.host.return_to(place, checkpoint, _UNDONE, _STEP)


async def _nothing() -> None:
    """Leave the worktree as it is: the session is asked again, and nothing is done anew."""
