"""The state of the watch over a pull request, and the watch's signals, updates and queries."""

from typing import Final

from temporalio import workflow

from septet.contracts.decisions import FindingsDecision, MoveCall, Target, check_move
from septet.contracts.facts import tell_findings
from septet.contracts.names import FOLLOWS, LOCAL_PULL, TROUBLE, WATCHER, Stage
from septet.contracts.pull_request_watch import (
    PullRequestEnd,
    PullRequestNews,
    PullRequestNudge,
    PullRequestWatch,
    WatchingHost,
)
from septet.contracts.task import MOVED_TO_BLOCKED, Move, Task, TaskError
from septet.contracts.workspace import HostSilence
from septet.errors import RefusedTransitionError
from septet.system.text import timestamp
from workflows.gates import FINDINGS_UPDATES
from workflows.notifications import Notifications
from workflows.pull_request.follower import Follower
from workflows.wire.failures import refusal
from workflows.wire.inputs import reads_input
from workflows.wire.search_attributes import Row

_DELIVERIES: Final = 50
"""How many delivery ids of a forge are remembered, so that a repeated delivery is ignored."""
_CLOSED: Final = "The pull request was closed without a merge."
_END: Final = "`septet move {id} done` ends it. For the rest, start another work order."
_END_OR_REOPEN: Final = (
    "`septet move {id} done` ends it. To continue, reopen the pull request, then `septet move {id} executing`."
)
_GO_ON: Final = "`septet move {id} executing` continues the work, `septet move {id} done` ends it."


class PullRequestHandlers:
    """The state of the watch over one pull request, with its signals, updates and queries."""

    def __init__(self, watch: PullRequestWatch) -> None:
        """Set the watch before `run`, because signals and updates may come first."""
        self._watch = watch
        self._has_begun = False
        self._task = watch.task
        self._history: tuple[Move, ...] = ()
        self._looks_again = False
        self._deliveries: tuple[str, ...] = ()
        self._is_looked_after = False
        """Whether a host polls the pull request and reports changes of it to this workflow."""
        self._row = Row()
        self._notifications = Notifications()
        self._follower = Follower(self._show)
        self._is_followed = False
        """Whether the memo already shows that an agent follows the pull request."""

    @workflow.query(description="The work order object, without its steps.")
    def work_order(self) -> Task:
        """Return the completed work order's task, as the board shows it."""
        return self._task

    @workflow.query(description="The stages it has been through since its work order completed.")
    def history(self) -> tuple[Move, ...]:
        """Return the task's moves between stages since its work order completed, oldest first."""
        return self._history

    @workflow.signal(description="Check the pull request now.")
    def nudge(self, nudge: PullRequestNudge | None = None) -> None:
        """Poll now; a closed pull request may have been reopened.

        After a person's nudge, a round that waits for a budget also reserves again.
        """
        self._begin()
        if nudge is not None and nudge.delivery:
            if nudge.delivery in self._deliveries:
                return
            self._deliveries = (*self._deliveries[1 - _DELIVERIES :], nudge.delivery)
        else:
            self._follower.budget_gate.open()
        self._looks_again = True
        if self._task.stage is Stage.BLOCKED:
            self._move(Stage.REVIEW, "looked at again")

    @workflow.update(description="Move the task on the board. A refusal lists where it may move from here.")
    @reads_input("move", MoveCall)
    def move(self, call: MoveCall) -> Task:
        """Move the task, and return the moved task."""
        self._begin()
        error = None
        if call.to is Target.BLOCKED:
            error = TaskError(
                type=MOVED_TO_BLOCKED,
                message=call.why or "a person moved it to blocked",
                remedy=_GO_ON.format(id=self._task.id),
            )
        if self._follower.is_active:
            self._follower.end(call.why or "a person took it over")
        self._move(Stage(call.to.value), call.why, call.who or "septet", error)
        return self._task

    @move.validator
    @reads_input("move", MoveCall)
    def _may_move(self, call: MoveCall) -> None:
        """Refuse a move that the task's stage does not allow, and a move to `executing`, which needs a reset."""
        try:
            check_move(self._task, call.to)
        except RefusedTransitionError as error:
            raise refusal(error.message, error.remedy) from None
        if call.to is Target.EXECUTING:
            raise refusal(
                f"{self._task.id} is completed.", f"`septet move {self._task.id} executing` continues the work."
            )

    @workflow.update(description="Allow findings that may be pushed, named by their ids.")
    @reads_input("approve_findings", FindingsDecision)
    def approve_findings(self, decision: FindingsDecision) -> Task:
        """Allow the findings and let the round continue; return the task."""
        return self._decide_findings(decision, rejects=False)

    @approve_findings.validator
    @reads_input("approve_findings", FindingsDecision)
    def _may_let_pass(self, decision: FindingsDecision) -> None:
        self._follower.findings_gate.check(decision, rejects=False)

    @workflow.update(description="Have the agent remove what was found, with your feedback.")
    @reads_input("reject_findings", FindingsDecision)
    def reject_findings(self, decision: FindingsDecision) -> Task:
        """Let the agent remove the findings in another try; return the task."""
        return self._decide_findings(decision, rejects=True)

    @reject_findings.validator
    @reads_input("reject_findings", FindingsDecision)
    def _may_have_taken_out(self, decision: FindingsDecision) -> None:
        self._follower.findings_gate.check(decision, rejects=True)

    def _decide_findings(self, decision: FindingsDecision, *, rejects: bool) -> Task:
        found = tell_findings(self._task.findings)
        self._follower.findings_gate.decide(decision, rejects=rejects)
        why = f"rejected: {decision.feedback}" if rejects else f"let pass: {' '.join(decision.findings)}"
        self._move(self._task.stage, f"{found}: {why}", decision.who or "septet")
        return self._task

    @workflow.signal(description="The work order completed again: watch this result from now on.")
    def renew(self, watch: PullRequestWatch) -> None:
        """Watch the new result of a work order that has completed again."""
        self._begin()
        self._take_in_watch(watch)

    def _begin(self) -> None:
        """Begin the watch that the workflow's input names; do nothing in later calls."""
        if not self._has_begun:
            self._has_begun = True
            self._take_in_watch(self._watch)

    def _take_in_watch(self, watch: PullRequestWatch) -> None:
        self._watch, self._task = watch, watch.task
        self._is_looked_after = watch.watcher is not None
        self._looks_again = not self._is_looked_after
        if watch.follow is not None and self._is_looked_after:
            self._follower.begin(watch.follow, watch.task)
        if self._is_looked_after and workflow.memo_value(WATCHER, None, type_hint=WatchingHost) != watch.watcher:
            workflow.upsert_memo({WATCHER: watch.watcher})
        self._show()

    @workflow.signal(description="A host has seen what became of the pull request, or cannot see it.")
    def looked(self, news: PullRequestNews) -> None:
        """Record a host's report, unless it is about an earlier pull request."""
        self._begin()
        if self._task.stage not in {Stage.REVIEW, Stage.EXECUTING} or news.url != self._task.pr_url:
            return
        self._follower.note(news.events)
        match news.state:
            case "merged" | "closed" as state:
                self._end(PullRequestEnd(state=state))
            case state:
                workflow.upsert_memo({TROUBLE: news if state == "unknown" else None})

    @workflow.signal(description="Another host watches from now on: the previous one is gone.")
    def watch_from(self, watcher: WatchingHost) -> None:
        """Record which host watches the pull request."""
        self._begin()
        queue = watcher.control_queue if self._watch.task_queue else ""
        self._watch = self._watch.model_copy(update={"watcher": watcher, "task_queue": queue})
        workflow.upsert_memo({WATCHER: watcher})

    @workflow.signal(description="The account of a budget says that there is room again.")
    def budget_open(self, scope: str) -> None:
        """Let a round that waits for a budget reserve again."""
        del scope
        self._follower.budget_gate.open()

    @workflow.signal(description="The host of the workspace is silent.")
    def host_silent(self, silence: HostSilence) -> None:
        """Record that a host is silent."""
        self._follower.hosts.note_silence(silence)

    @workflow.signal(description="A host answers again.")
    def host_back(self, host: str) -> None:
        """Record that a host answers again."""
        self._follower.hosts.note_return(host)

    @workflow.update(
        description="A host is dead: a round there continues on another. Some work may be paid for twice."
    )
    @reads_input("host_gone", str)
    def host_gone(self, host: str) -> None:
        """Give up a host that a person reports as gone, even if its agent may still run."""
        self._follower.hosts.give_up(host)

    @host_gone.validator
    @reads_input("host_gone", str)
    def _works_on(self, host: str) -> None:
        """Refuse a report that a host is gone if no round runs on that host."""
        if self._task.stage is not Stage.EXECUTING or not self._follower.hosts.holds(host):
            raise refusal(f"no agent works on this pull request on host {host}")

    def _end(self, end: PullRequestEnd) -> None:
        if self._follower.is_active:
            self._follower.end(f"the pull request is {end.state}")
        if end.state == "merged":
            self._move(Stage.DONE, "the pull request is merged")
            return
        is_local = LOCAL_PULL.fullmatch(self._task.pr_url or "") is not None
        remedy = (_END if is_local else _END_OR_REOPEN).format(id=self._task.id)
        error = TaskError(type="PullRequestClosed", message=_CLOSED, remedy=remedy)
        self._move(Stage.BLOCKED, _CLOSED, error=error)

    def _move(self, to: Stage, why: str, who: str = "septet", error: TaskError | None = None) -> None:
        now, before = timestamp(workflow.now()), self._task.stage.value
        move = Move(when=now, who=who, **{"from": before}, to=to.value, why=why)
        self._history = (*self._history, move)
        self._task = self._task.model_copy(update={"stage": to, "error": error, "updated_at": now})
        self._show()

    def _show(self) -> None:
        self._task = task = self._follower.tell(self._task)
        if self._is_followed is not self._follower.is_active:
            self._is_followed = self._follower.is_active
            workflow.upsert_memo({FOLLOWS: self._is_followed or None})
        wait = f"\n\n**Waiting for its budget**: {task.question}" if task.budget else ""
        if task.findings:
            wait = f"\n\n**Waiting for your decision**. {task.findings_question} {FINDINGS_UPDATES}"
        why = f"\n\n**{task.error.type}**: {task.error.message} {task.error.remedy}" if task.error else ""
        rework = f"\n\n{task.rework.text}" if task.rework else ""
        details = f"{rework}{wait}{why}"
        workflow.set_current_details(f"**{task.id}** · {task.pr_url} · **{task.stage.value}**{details}")
        self._row.write(task, self._follower.hosts.attributes if self._follower.is_active else ())
        self._notifications.note_wait(task, self._follower.hosts.workspace)
