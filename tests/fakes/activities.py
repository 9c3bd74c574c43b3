"""Doubles of the seven steps, the finalizer and the workspace, registered by name."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import Any, Literal

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.board.board import CancelWorkOrder
from septet.board import OthersLook
from septet.contracts.facts import Rescue
from septet.contracts.names import Step, Verdict
from septet.contracts.pull_request_watch import PullRequestEnd, PullRequestLook
from septet.contracts.rework import PreparedRework
from septet.contracts.steps import EndCall, FinalizeCall, StepCall, StepResult
from septet.contracts.task import Notification
from septet.contracts.workspace import MoveWorkspace, OpenWorkspace, Workspace

ANSWERS = {
    Step.CLASSIFY_ISSUE: "/bug",
    Step.BUILD_PLAN: "specs/plan.md",
    Step.FIND_PLAN_FILE: "specs/plan.md",
    Step.GENERATE_BRANCH: "bug-issue-1-wo-1-fix",
    Step.IMPLEMENT_PLAN: "Fixed the total.",
    Step.CREATE_COMMIT: "implementor: bug: fix the total",
    Step.CREATE_PULL_REQUEST: "file:///origin.git/pull/1",
}

PLAN_SHA256 = "c0de" * 16
LOOK_AGAIN = timedelta(seconds=0.1)

Behaviour = Callable[[StepCall], StepResult | Awaitable[StepResult]]


def done(call: StepCall, text: str | None = None, **facts: Any) -> StepResult:
    return StepResult(
        step=call.step,
        verdict=Verdict.DONE,
        result_text=text or ANSWERS[call.step],
        session_id=f"session-{call.step}",
        agent="double",
        parsed_by="json",
        checkpoint=f"after-{call.step}",
        plan_sha256=PLAN_SHA256 if call.step is Step.FIND_PLAN_FILE and text != "0" else None,
        **{"commit_sha": "c0ffee" if call.step is Step.CREATE_COMMIT else None, **facts},
    )


def not_yet(why: str, kind: str = "NotYet", again: timedelta = LOOK_AGAIN) -> ApplicationError:
    return ApplicationError(why, type=kind, next_retry_delay=again, category=ApplicationErrorCategory.BENIGN)


def ended(call: StepCall, verdict: Verdict, *reasons: str, **facts: Any) -> StepResult:
    return StepResult(
        step=call.step, verdict=verdict, reasons=reasons, session_id="session", agent="double", **facts
    )


@dataclass
class Doubles:
    """The answer of each activity, try by try; the last answer repeats. Calls are recorded."""

    task_queue: str
    steps: dict[Step, Sequence[Behaviour]] = field(default_factory=dict)
    _: KW_ONLY
    rework: Sequence[Behaviour] = ()
    """The results of the rounds on a pull request, try by try; empty means that each round is done."""
    readings: Sequence[Behaviour] = ()
    """The results of the readers, in order; empty means that no reader finds anything."""
    preparation: Literal["ready", "answered", "merged", "closed", "gone"] = "ready"
    finalizer: Sequence[Callable[[FinalizeCall], StepResult]] = ()
    open_workspace: Callable[[OpenWorkspace], Workspace] | None = None
    move_workspace: Callable[[MoveWorkspace], Workspace] = lambda asked: asked.workspace
    calls: list[tuple[str, Any]] = field(default_factory=list)
    pull_requests: dict[str, str] = field(default_factory=dict)
    """The state by address: `merged`, `closed`, or an error's text; a pull request without an entry is open."""
    looks: list[tuple[str, Any]] = field(default_factory=list)
    """The polls of pull requests and of other work orders, whose order is not fixed."""
    sent: list[Notification] = field(default_factory=list)
    over: set[str] = field(default_factory=set)

    def activities(self) -> list[Callable[..., Any]]:
        @activity.defn(name="open_workspace")
        async def open_workspace(asked: OpenWorkspace) -> Workspace:
            self.calls.append(("open_workspace", asked))
            return self.open_workspace(asked) if self.open_workspace else self.workspace(asked)

        @activity.defn(name="finalize_json")
        async def finalize_json(asked: FinalizeCall) -> StepResult:
            return await self._result("finalize_json", asked, self.finalizer)

        @activity.defn(name="move_workspace")
        async def move_workspace(asked: MoveWorkspace) -> Workspace:
            self.calls.append(("move_workspace", asked))
            return self.move_workspace(asked)

        @activity.defn(name="end_work")
        async def end_work(call: EndCall) -> StepResult:
            self.calls.append(("end_work", call))
            rescue = Rescue(snapshot="wo/0009-rescue", reason="cancelled")
            return ended(call, Verdict.CANCELLED, "cancelled", rescues=(rescue,))

        @activity.defn(name="look_at_pull_request")
        async def look_at_pull_request(asked: PullRequestLook) -> PullRequestEnd:
            self.looks.append(("look_at_pull_request", asked))
            state = self.pull_requests.get(asked.url, "open")
            if state not in {"merged", "closed"}:
                raise not_yet(state, "PullRequestOpen" if state == "open" else "ForgeUnavailable")
            return PullRequestEnd.model_validate({"state": state})

        @activity.defn(name="look_at_others")
        async def look_at_others(asked: OthersLook) -> None:
            self.looks.append(("look_at_others", asked))
            if missing := sorted(set(asked.after) - self.over):
                raise not_yet(f"not over: {', '.join(missing)}")

        @activity.defn(name="send_notification")
        async def send_notification(notification: Notification) -> None:
            self.sent.append(notification)

        orders = (open_workspace, move_workspace, finalize_json, end_work, CancelWorkOrder().run)
        looks = (look_at_pull_request, look_at_others, send_notification)
        return [*orders, *looks, *self._rounds(), *map(self._step, Step)]

    def _rounds(self) -> list[Callable[..., Any]]:
        @activity.defn(name="prepare_rework")
        async def prepare_rework(call: StepCall) -> PreparedRework:
            self.calls.append(("prepare_rework", call))
            assert call.rework is not None
            return PreparedRework(
                rework=call.rework.model_copy(update={"head": "1ead" * 10}),
                state=self.preparation,
                checkpoint=f"round-{call.rework.round}",
            )

        @activity.defn(name="rework")
        async def rework(call: StepCall) -> StepResult:
            mended = [lambda call: done(call, "Mended.", commit_sha="badc0de")]
            return await self._result("rework", call, self.rework or mended)

        @activity.defn(name="read_outgoing")
        async def read_outgoing(call: StepCall) -> StepResult:
            return await self._result(
                "read_outgoing", call, self.readings or [lambda call: done(call, "findings: 0")]
            )

        return [prepare_rework, rework, read_outgoing]

    async def _result(self, name: str, call: Any, tries: Sequence[Callable[[Any], Any]]) -> StepResult:
        self.calls.append((name, call))
        count = sum(each == name for each, _ in self.calls)
        result = tries[min(count, len(tries)) - 1](call)
        given: StepResult = await result if inspect.isawaitable(result) else result
        return given

    def workspace(self, asked: OpenWorkspace) -> Workspace:
        return Workspace(
            work_order_id=asked.work_order_id,
            host="host",
            task_queue=self.task_queue,
            repository=asked.repository,
            forge="local",
            project="app",
            base_branch="main",
            base_sha="0" * 40,
            path="/nowhere",
            agent=asked.agent or "double",
            issue_number=str(asked.issue or ""),
            issue_title=asked.title or "Totals are wrong",
            checkpoint="fresh",
        )

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def calls_of(self, step: Step) -> list[StepCall]:
        return [call for name, call in self.calls if name == step.value]

    def _step(self, step: Step) -> Callable[..., Any]:
        @activity.defn(name=step.value)
        async def run(call: StepCall) -> StepResult:
            return await self._result(step.value, call, self.steps.get(step, [done]))

        return run
