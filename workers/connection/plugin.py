"""What every client, worker, test and replay of ours has in common, given to the SDK in one place."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from types import UnionType
from typing import TYPE_CHECKING, Any

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.activity_result import ActivityResolution
from temporalio.bridge.proto.child_workflow import ChildWorkflowResult
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    HandleSignalInput,
    Interceptor,
    WorkerConfig,
    WorkflowInboundInterceptor,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowInterceptorClassInput,
    WorkflowRunner,
)
from temporalio.worker import Interceptor as WorkerInterceptor
from temporalio.worker._workflow_instance import _WorkflowInstanceImpl
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from septet.contracts.seal import NOTHING_SEALED, refusal_of
from workers.builds.workflow_guard import GuardedWorkflowRunner
from workers.connection.data_converter import pydantic_values

if TYPE_CHECKING:
    from workers.connection.payload_codec import (
        SealingCodec,  # where nothing is sealed, its cryptography is not imported
    )


class SignalInputChecks(Interceptor):
    """Drops signals without the input that their handlers need, as the SDK does with input that it cannot read."""

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 -- the SDK's own name
    ) -> type[WorkflowInboundInterceptor]:
        """Return what stands before the handlers of workflows."""
        del input
        return _SignalInputChecksInbound


class _SignalInputChecksInbound(WorkflowInboundInterceptor):
    async def handle_signal(self, input: HandleSignalInput) -> None:  # noqa: A002 -- the SDK's own name
        """Hand the signal on, or log that it is dropped; a handler has the name of its signal."""
        if not takes(getattr(workflow.instance(), input.signal), input.args):
            workflow.logger.error(f"The input of signal {input.signal} is not what it takes, dropping the signal")
            return
        await super().handle_signal(input)


def takes(handler: Callable[..., Any], args: Sequence[object]) -> bool:
    """Say whether a bound handler can be called with these arguments: with so many, and of these types.

    The SDK decodes by the handler's types, but not what comes as bytes or as nothing at all.
    """
    signature = inspect.signature(handler)
    try:
        given = signature.bind(*args).arguments
    except TypeError:
        return False
    return all(_is_of(value, signature.parameters[name].annotation) for name, value in given.items())


def _is_of(value: object, annotation: object) -> bool:
    """Say whether a value is of a type; what is not a plain type or a union of such takes anything."""
    if annotation in (Any, inspect.Parameter.empty) or not isinstance(annotation, type | UnionType):
        return True
    return isinstance(value, annotation)


class SeptetPlugin(SimplePlugin):
    """The converter of values for clients, workers and replays; for the latter workflows and their guard too.

    What observes them comes with it as interceptors: for a client's own calls, and for all of its workers.

    A client hands it on to its workers, which are not given it again; a replayer and a test's environment are.
    Workflows that are named beside it, such as a test's, stand for all. Activities, and the interceptor that keeps
    their tokens, stay with their queues: a plugin's go to every worker of its client.
    """

    def __init__(
        self,
        task_queue: str = "",
        interceptors: Sequence[ClientInterceptor | WorkerInterceptor] = (),
        codec: "SealingCodec | None" = None,
    ) -> None:
        """Take the queue of work orders: among a client's workers its own alone serves all workflows."""
        super().__init__(
            "septet",
            data_converter=partial(pydantic_values, codec),
            workflows=_default_workflows,
            workflow_runner=partial(_guarding_runner, codec is not None and codec.refuses_unsealed),
            interceptors=[*interceptors, SignalInputChecks()],
        )
        self._task_queue = task_queue

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Leave the workers of other queues the workflows that they are given."""
        own = config.get("workflows", ())
        configured = super().configure_worker(config)
        if config["task_queue"] != self._task_queue:
            configured["workflows"] = own
        return configured


def _default_workflows(workflows: Sequence[type] | None) -> Sequence[type]:
    """Import workflows where they are served or replayed: a client does without."""
    from workflows.board.board import Board
    from workflows.board.janitor import Janitor
    from workflows.budgets.account import Account
    from workflows.budgets.costs import Costs
    from workflows.budgets.quota import Quota
    from workflows.intake.comment import CommentCommandWorkflow
    from workflows.intake.intake import Intake
    from workflows.intake.tracker_session import TrackerPrompt, TrackerReport, TrackerSession
    from workflows.notifications.notification import NotificationWorkflow
    from workflows.pipeline import Pipeline
    from workflows.pull_request.pull_request import PullRequestWorkflow
    from workflows.work_order import WorkOrder

    return workflows or [
        WorkOrder,
        PullRequestWorkflow,
        NotificationWorkflow,
        Board,
        Janitor,
        Pipeline,
        Intake,
        CommentCommandWorkflow,
        TrackerSession,
        TrackerPrompt,
        TrackerReport,
        Account,
        Quota,
        Costs,
    ]


def _guarding_runner(refuses_unsealed: bool, runner: WorkflowRunner | None) -> WorkflowRunner:
    """Let the guard stand in for the SDK's sandbox; a runner that somebody has chosen stays."""
    if runner is not None and not isinstance(runner, SandboxedWorkflowRunner):
        return runner
    if refuses_unsealed:
        from workers.connection.plugin import SealRequiringRunner

        return SealRequiringRunner()
    from workers.builds.workflow_guard import GuardedWorkflowRunner

    return GuardedWorkflowRunner()


class SealRequiringRunner(GuardedWorkflowRunner):
    """Runs workflows that accept no input without a seal."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Return a run of a workflow."""
        return _SealRequiringInstance(det)  # type: ignore[abstract]  # as the SDK's own


class _SealRequiringInstance(_WorkflowInstanceImpl):
    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Mark what is to be refused, and go on."""
        for job in act.jobs:
            mark(job)
        return super().activate(act)


def mark(job: WorkflowActivationJob) -> None:
    """Mark updates without input, results without a value and failures whose words are not sealed.

    An update is marked for its validator alone: one that was accepted is carried out in each replay.
    """
    if job.HasField("do_update"):
        if job.do_update.run_validator and not job.do_update.input:
            job.do_update.input.append(_unsealed())
    elif job.HasField("resolve_activity"):
        _mark_result(job.resolve_activity.result)
    elif job.HasField("resolve_child_workflow_execution"):
        _mark_result(job.resolve_child_workflow_execution.result)


def _mark_result(result: ActivityResolution | ChildWorkflowResult) -> None:
    """Let what was not sealed be a result that the converter of values refuses: the workflow fails by it."""
    has_no_value = result.HasField("completed") and not result.completed.HasField("result")
    if has_no_value or (result.HasField("failed") and not _is_sealed(result.failed.failure)):
        result.completed.result.CopyFrom(_unsealed())


def _is_sealed(failure: Failure) -> bool:
    """Return whether a worker with a key wrote a failure, or the server, which alone reports time-outs."""
    if not failure.HasField("cause"):
        return False
    cause = failure.cause
    if not cause.HasField("application_failure_info"):
        return cause.WhichOneof("failure_info") is not None
    return cause.HasField("encoded_attributes") and refusal_of(cause.encoded_attributes.metadata) is None


def _unsealed() -> Payload:
    return Payload(metadata=NOTHING_SEALED)
