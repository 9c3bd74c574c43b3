"""Run the rounds on one pull request: collect events, and let an agent answer them."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import count
from typing import Final

from temporalio import workflow
from temporalio.exceptions import ActivityError

from septet.contracts.facts import Rescue, Usage
from septet.contracts.names import Step, Verdict
from septet.contracts.pull_request_watch import Follow
from septet.contracts.rework import PreparedRework, Rework, ReworkEvent, ReworkRound, ReworkState, RoundOutcome
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from workflows.gates import BudgetGate, FindingsGate
from workflows.hosts.host_watch import HostWatch
from workflows.hosts.steps import ActivityIds, StepTaker
from workflows.pull_request.round_waits import RoundWaits
from workflows.wire.activity_stubs import PREPARE_REWORK
from workflows.wire.failures import AgentEnded, AgentLeft, explain_failure
from workflows.wire.policies import WORKSPACE_OPTIONS, priority_of

_TITLES_SHOWN: Final = 5
_TRIES: Final = 2
"""The most tries of a round; after a person's decision on findings, as many again."""


class Follower:
    """Runs an agent's rounds on one pull request; nothing happens before `begin`."""

    def __init__(self, show: Callable[[], None]) -> None:
        """Create the inactive follower; `show` publishes the task's state for people."""
        self._follow: Follow | None = None
        self._show = show
        self._waits = RoundWaits()
        self.hosts = HostWatch(self._waits, show)
        self._ids = ActivityIds()
        self.budget_gate = BudgetGate(self._waits, show)
        self._steps = StepTaker(self.hosts, self._ids, self.budget_gate)
        self._waiting: dict[str, ReworkEvent] = {}
        self._taken: set[str] = set()
        """The ids of the events that earlier rounds have answered."""
        self._worked = timedelta(0)
        self.findings_gate = FindingsGate(self._waits, show)
        self._news_at = workflow.now()
        self._call: StepCall | None = None
        self.state: ReworkState | None = None
        self._base_usage = Usage()
        self.usage = Usage()
        self.rescues: tuple[Rescue, ...] = ()

    def begin(self, follow: Follow, task: Task) -> None:
        """Follow the pull request from now on; count its rounds and their work time from zero."""
        self._follow, self._news_at = follow, workflow.now()
        self._base_usage, self.usage = task.usage, Usage()
        self.hosts.workspace = follow.call.workspace
        self._waiting, self._worked = {}, timedelta(0)
        self.state = ReworkState(rounds=follow.terms.rounds)

    @property
    def is_active(self) -> bool:
        """Whether the pull request is followed."""
        return self.state is not None and self.state.state != "ended"

    @property
    def is_due(self) -> bool:
        """Whether an event waits for a round."""
        return self.is_active and bool(self._waiting)

    @property
    def quiet_left(self) -> timedelta | None:
        """The time after which following ends if no event comes; `None` if no pull request is followed."""
        if self._follow is None or not self.is_active:
            return None
        until = self._news_at + timedelta(seconds=self._follow.terms.quiet_seconds)
        return max(until - workflow.now(), timedelta(0))

    @property
    def text(self) -> str:
        """The state of the rounds, as a sentence for people; empty if no pull request was ever followed."""
        return self.state.text if self.state is not None else ""

    def tell(self, task: Task) -> Task:
        """Return the task with the results of the rounds, and with the reason of a wait, if any."""
        if self.state is not None and self._follow is not None:
            update: dict[str, object] = {
                "rework": self.state,
                "commit_sha": self._follow.call.progress.commit_sha or task.commit_sha,
                "rescues": (*task.rescues, *(each for each in self.rescues if each not in task.rescues)),
                "usage": self._base_usage.plus(self.usage),
            }
            task = task.model_copy(update=update | self._waits.task_fields(task.id))
        self._waits.task = task
        return task

    def note(self, events: Iterable[ReworkEvent]) -> None:
        """Record new events of the pull request; ignore those that earlier rounds have answered."""
        if not self.is_active:
            return
        new = {event.id: event for event in events if event.id not in self._taken}
        if new.keys() - self._waiting.keys():
            self._news_at = workflow.now()
        self._waiting |= new

    def end(self, why: str) -> None:
        """Stop following the pull request, for the reason `why`."""
        if self.state is not None and self.is_active:
            self._waiting = {}
            self._waits.end()
            state = self.state.ending_round("ended")
            self.state = state.model_copy(update={"state": "ended", "why": why})

    def take_round(self) -> bool:
        """Begin a round with all waiting events; at a limit, stop following and return `False`."""
        if self.state is None or self._follow is None:
            return False
        terms = self._follow.terms
        if self.state.round >= terms.rounds:
            self.end(f"the round limit ({terms.rounds}) is reached, and this still needs you: {self._titles()}")
            return False
        if self._worked >= timedelta(seconds=terms.work_seconds):
            self.end(f"the time limit for rounds is reached, and this still needs you: {self._titles()}")
            return False
        events = tuple(self._waiting.values())
        self._taken |= self._waiting.keys()
        titles = tuple(event.title for event in events[:_TITLES_SHOWN])
        round_ = ReworkRound(number=self.state.round + 1, events=titles)
        self.state = self.state.model_copy(
            update={
                "state": "working",
                "round": round_.number,
                "events": titles,
                "history": (*self.state.history, round_),
            }
        )
        rework = Rework(round=self.state.round, url=self._follow.url, events=events)
        self._call, self._waiting = self._follow.call.model_copy(update={"rework": rework}), {}
        return True

    async def carry_out(self, task: Task) -> None:
        """Run the round; if it fails, stop following.

        Raises:
            AgentEnded: The round was cancelled, and has ended its agent.
        """
        began, self._waits.waited = workflow.now(), timedelta(0)
        try:
            await self._try_twice(task)
        except ActivityError as error:
            self._end_round("failed")
            self.end(explain_failure(error)[0].message)
        self._worked += workflow.now() - began - self._waits.waited
        self._news_at, self._waits.error = workflow.now(), None
        if self.state is not None and self.is_active:
            self.state = self.state.model_copy(update={"state": "waiting"})
        self._call = None

    async def end_agent(self) -> None:
        """End a cancelled round's agent; do not wait for a silent host."""
        call, self._call = self._call, None
        if call is None or self.hosts.is_silent:
            return
        try:
            result = await self._steps.end(call.model_copy(update={"workspace": self.hosts.here}))
        except (AgentLeft, ActivityError):
            return
        self._take_in(result if self._steps.is_under_way else result.model_copy(update={"usage": Usage()}))

    async def _try_twice(self, task: Task) -> None:
        if self._call is None or self._follow is None:
            message = "no round was taken"
            raise RuntimeError(message)
        call, reasons, tries = self._call, tuple[str, ...](), 0
        for number in count(1):
            prepared = await self._prepare(call.model_copy(update={"attempt": number}), task)
            if prepared.state != "ready":
                self._leave(prepared)
                return
            tries += 1
            update = {
                "rework": prepared.rework,
                "starts_from": prepared.checkpoint,
                "attempt": min(number, _TRIES),
                "reasons": reasons,
                "allowed_findings": (*self._follow.call.allowed_findings, *self.findings_gate.allowed),
            }
            call = self._call = call.model_copy(update=update)
            result = await self._steps.take(call, priority_of(task, Step.CREATE_PULL_REQUEST))
            self._take_in(result)
            if result.verdict is Verdict.CANCELLED:
                self._call = None
                raise AgentEnded
            if result.verdict is Verdict.DONE:
                self._learn(result)
                return
            reasons = result.reasons
            if result.findings and (result.is_a_persons or tries >= _TRIES):
                reasons, tries = (await self.findings_gate.wait_for_words(result.findings),), 0
            elif result.unread or tries >= _TRIES:
                break
        self._end_round("failed")
        self.end("; ".join(reason.rstrip(".") for reason in reasons) or "the agent's answer was not accepted")

    async def _prepare(self, call: StepCall, task: Task) -> PreparedRework:
        def start(call: StepCall) -> workflow.ActivityHandle[PreparedRework]:
            round_ = call.rework.round if call.rework is not None else 0
            return PREPARE_REWORK.start(
                call,
                task_queue=call.workspace.task_queue,
                activity_id=self._ids.of("prepare_rework"),
                summary=f"round {round_}: the branch as it is on the forge",
                priority=priority_of(task, Step.CREATE_PULL_REQUEST),
                **WORKSPACE_OPTIONS,
            )

        return await self.hosts.follow(call, start, [])

    def _leave(self, preparation: PreparedRework) -> None:
        """End a round that has nothing to do; if its events were already answered, the round does not count."""
        if preparation.state == "gone":
            self._end_round("gone")
            self.end("its branch is gone")
        elif self.state is not None and preparation.state == "answered":
            update = {"round": self.state.round - 1, "history": self.state.history[:-1]}
            self.state = self.state.model_copy(update=update)
        elif preparation.state in {"merged", "closed"}:
            self._end_round("merged" if preparation.state == "merged" else "closed")

    def _end_round(self, outcome: RoundOutcome, commit_sha: str = "") -> None:
        if self.state is not None:
            self.state = self.state.ending_round(outcome, commit_sha)

    def _take_in(self, result: StepResult) -> None:
        self.usage = self.usage.plus(result.usage)
        self.rescues = (*self.rescues, *(new for new in result.rescues if new not in self.rescues))

    def _learn(self, result: StepResult) -> None:
        self._end_round("done", result.commit_sha or "")
        if self._follow is None:
            return
        call = self._follow.call
        progress = call.progress.model_copy(update={"commit_sha": result.commit_sha or call.progress.commit_sha})
        update = {
            "progress": progress,
            "session_id": result.session_id or call.session_id,
            "starts_from": result.checkpoint or call.starts_from,
            "workspace": self.hosts.here,
        }
        self._follow = self._follow.model_copy(update={"call": call.model_copy(update=update)})

    def _titles(self) -> str:
        return ", ".join(event.title for event in list(self._waiting.values())[:_TITLES_SHOWN])
