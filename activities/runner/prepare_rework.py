"""Prepare a round on a pull request: update the worktree to the forge's branch, and read the feedback."""

from dataclasses import dataclass
from typing import Final

import structlog
from pydantic import JsonValue
from temporalio import activity

from activities.host.frozen_inputs import FrozenRework, read_frozen_rework, write_frozen_rework
from activities.host.host import Host
from activities.host.remote_checkpoints import expect_hold, keep
from activities.host.running_attempts import Fence, take_fence
from activities.turns.prepared_steps import opened_place
from septet.contracts.rework import PreparedRework, Rework
from septet.contracts.steps import StepCall
from septet.errors import ForgeError, WorkspaceError
from septet.forges.events.feedback import Feedback, read_feedback
from septet.forges.forge import FollowedForge
from septet.forges.values import pull_request_number
from septet.git.commits.new_base import refuse_erased_base
from septet.git.commits.rework_tree import RemoteTips, fetch_tips, go_forward, is_clean, lay_merge, merge_trees
from septet.git.engine.place import Place
from septet.git.vault.facts import Snapshot, SnapshotOptions
from septet.git.vault.vault import find, first_and_last, vault_at
from septet.system.threads import shielded_thread, stoppable_thread

_REASON: Final = "a round on the pull request begins"
_YOURSELF: Final = "Answer the pull request yourself; its branch is as it was."

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PrepareRework:
    """Prepares an agent's rounds on pull requests, on this host."""

    host: Host

    @activity.defn(name="prepare_rework")
    async def run(self, call: StepCall) -> PreparedRework:
        """Update the worktree to the pushed branch, write merge conflicts into its files, and save the feedback.

        Idempotent: if this try of the round is already prepared, its result is returned. Leaves the changed
        worktree, and the feedback in the work order's records; a rescue holds earlier changes of the worktree.

        Raises:
            ApplicationError: The forge, the origin or the disk refused.
        """
        host = self.host
        async with host.working():
            preparation = await shielded_thread(host.threads.disk, _begin, host, call)
            halt = preparation.fence.halt
            prepared = await stoppable_thread(host.threads.network, halt.now, preparation.prepare)
        _log.info("rework_prepared", state=prepared.state, round=prepared.rework.round)
        return prepared


@dataclass(frozen=True, slots=True)
class _Preparation:
    """Prepares the worktree and the feedback for one try of a round."""

    host: Host
    call: StepCall
    place: Place
    fence: Fence

    @property
    def _rework(self) -> Rework:
        if self.call.rework is None:
            message = "the call names no round"
            raise RuntimeError(message)
        return self.call.rework

    def prepare(self) -> PreparedRework:
        """Prepare this try of the round, or return what an earlier attempt has prepared."""
        rework, run_id = self._rework, self.fence.key.run_id
        frozen = read_frozen_rework(self.place, run_id, rework.round)
        if frozen is not None and len(frozen.prepared) >= self.call.attempt:
            return frozen.prepared[self.call.attempt - 1]
        address, forge = self.host.forges.of(self.call.workspace.repository)
        if not isinstance(forge, FollowedForge):
            raise ForgeError(
                f"Septet cannot follow pull requests of {address.url}.",
                remedy="Answer the pull request yourself; agents can on GitHub, GitLab and Gitea.",
            )
        number, commit = pull_request_number(rework.url), self.call.progress.commit_sha or ""
        feedback = read_feedback(forge, number, commit, self.host.settings.trusted_accounts)
        if feedback.pull_request.state != "open":
            return PreparedRework(rework=rework, state=feedback.pull_request.state)
        if frozen is None:
            # Only the words of events that still wait for an answer count.
            waiting = {event.id for event in feedback.events}
            words = feedback.words_on({event.id for event in rework.events if event.id in waiting})
            frozen = FrozenRework(run_id=run_id, round=rework.round, words=words)
        expect_hold(self.host, self.place)
        with self.fence.lease.hold():
            prepared, current = self._prepare_tree(frozen, feedback, self.host.forges.token(address))
        if prepared.state == "ready":
            update = {"prepared": (*frozen.prepared, prepared), "words": current.words}
            write_frozen_rework(self.place, frozen.model_copy(update=update))
        return prepared

    def _prepare_tree(
        self, frozen: FrozenRework, feedback: Feedback, token: str | None
    ) -> tuple[PreparedRework, FrozenRework]:
        """Update the worktree to the pushed branch; return the prepared round, and the inputs to save."""
        branch, before = self.call.progress.branch_name or "", frozen.prepared[-1] if frozen.prepared else None
        tips = fetch_tips(self.place, branch, token)
        if tips is None:
            return PreparedRework(rework=self._rework, state="gone"), frozen
        refuse_erased_base(self.place, tips.head, tips.base)
        if before is not None and before.rework.head == tips.head:
            return before, frozen  # the second try keeps the worktree
        self._return_to_start(keeps_clean=before is not None)
        self.fence.check()
        unpushed = go_forward(self.place, branch, tips.head, self._options())
        waiting = {event.id for event in feedback.events} if before is None else None
        events = tuple(each for each in self._rework.events if waiting is None or each.id in waiting)
        rework = self._rework.model_copy(update={"head": tips.head, "events": events})
        rework = self._lay_merge(rework, unpushed, tips)
        if not rework.events and not rework.merges:
            return PreparedRework(rework=rework, state="answered"), frozen
        base, paths = self.call.workspace.base_branch, rework.conflicts
        conflict: JsonValue = {"with": base, "paths": list(paths)} if paths else None
        words = {**frozen.words, "conflict": conflict}
        checkpoint = self._last()
        with self.fence.halt.over():
            for warning in keep(self.host, self.place):
                _log.warning("checkpoint_not_kept", why=warning)
        prepared = PreparedRework(rework=rework, state="ready", checkpoint=checkpoint.name)
        return prepared, frozen.model_copy(update={"words": words})

    def _lay_merge(self, rework: Rework, unpushed: str, tips: RemoteTips) -> Rework:
        """Merge `unpushed` (the branch's tip on the forge; if empty, the base), and return the new `rework`.

        The base is merged only if an event and git report a conflict; if only the event does, it is removed.
        """
        wants_base = any(event.kind == "conflict" for event in rework.events)
        theirs = unpushed or (tips.base if wants_base else "")
        if not theirs:
            return rework
        merged = merge_trees(self.place, theirs)
        if not unpushed and not merged.conflicts:
            events = tuple(event for event in rework.events if event.kind != "conflict")
            return rework.model_copy(update={"events": events})
        lay_merge(self.place, merged, self._options())
        return rework.model_copy(
            update={"merges": theirs, "conflicts": merged.conflicts[:20], "conflicts_count": len(merged.conflicts)}
        )

    def _options(self) -> SnapshotOptions:
        return self.host.snapshots.options(_REASON, self.call.name, self._last())

    def _return_to_start(self, *, keeps_clean: bool) -> None:
        """Undo changes since the last step, and the uncommitted work of an earlier try.

        With `keeps_clean`, a clean worktree stays as it is, with the commit of an earlier try.
        """
        if keeps_clean and is_clean(self.place):
            return
        start = self.call.starts_from
        if not start:
            raise WorkspaceError(
                f"{self.place.order_id} has no checkpoint to begin a round with.", remedy=_YOURSELF
            )
        if self.host.snapshots.differs(self.place, start):
            self.host.snapshots.return_to(self.place, start, _REASON, self.call.name)

    def _last(self) -> Snapshot:
        taken = self.host.snapshots.take(self.place, "checkpoint", _REASON, self.call.name)
        known = first_and_last(vault_at(self.place), self.place.order_id)
        if taken is None and known is None:
            raise WorkspaceError(f"{self.place.order_id} has no snapshot.", remedy=_YOURSELF)
        return taken or find(vault_at(self.place), known[1].name if known else "")


def _begin(host: Host, call: StepCall) -> _Preparation:
    """Record the attempt, and return its preparation; wait while another worker records an attempt."""
    place = opened_place(host, call)
    fence = take_fence(host.runs, call.workspace.place_id, call.workspace.visit)
    return _Preparation(host, call, place, fence)
