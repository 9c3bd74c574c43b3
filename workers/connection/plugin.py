"""The SDK plugin with what every client, worker, test and replay of Septet needs."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from types import UnionType
from typing import Any, Final

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.activity_result import ActivityResolution
from temporalio.bridge.proto.child_workflow import ChildWorkflowResult
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.converter import SerializationContext
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    HandleSignalInput,
    Interceptor,
    UnsandboxedWorkflowRunner,
    WorkerConfig,
    WorkflowInboundInterceptor,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowInterceptorClassInput,
    WorkflowRunner,
)
from temporalio.worker import Interceptor as WorkerInterceptor
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from septet.contracts.seal import NOTHING_SEALED, refusal_of
from septet.settings import Settings
from workers.connection.data_converter import pydantic_values
from workers.connection.payload_codec import SealingCodec, codec_of
from workers.observing.activity_observer import activity_observer
from workers.observing.metrics import measured_runtime
from workers.observing.runtime import heartbeat_seconds, observers, quiet_runtime
from workflows.board import Board
from workflows.budgets import Account, Costs, Quota
from workflows.intake import CommentCommandWorkflow, Intake
from workflows.janitor import Janitor
from workflows.notifications import NotificationWorkflow
from workflows.pipeline.workflow import Pipeline
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.tracker_session import TrackerPrompt, TrackerReport, TrackerSession
from workflows.work_order.workflow import WorkOrder

_WORKFLOWS: Final = (
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
)
_PASSED_THROUGH: Final = ("septet", "workers", "opentelemetry")
"""The modules that the SDK's sandbox does not import again for each run of a workflow. An import of all modules
would take 60 ms and 870 KB per run. A test searches the workflows for code that the sandbox would refuse."""


class SignalInputChecks(Interceptor):
    """Drops signals whose input does not fit the handler; the SDK itself drops only undecodable input."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        """Return the class of the interceptor that checks signals."""
        del input
        return _SignalInputChecksInbound


class _SignalInputChecksInbound(WorkflowInboundInterceptor):
    async def handle_signal(self, input: HandleSignalInput) -> None:
        """Pass the signal to its handler, or drop and log it."""
        if not takes(getattr(workflow.instance(), input.signal), input.args):
            workflow.logger.error(f"The input of signal {input.signal} is not what it takes, dropping the signal")
            return
        await super().handle_signal(input)


def takes(handler: Callable[..., Any], args: Sequence[object]) -> bool:
    """Return whether the number and the types of these decoded arguments fit a handler."""
    signature = inspect.signature(handler)
    try:
        given = signature.bind(*args).arguments
    except TypeError:
        return False
    return all(_is_of(value, signature.parameters[name].annotation) for name, value in given.items())


def _is_of(value: object, annotation: object) -> bool:
    """Return whether a value is of an annotated type; only plain types and unions are checked, others pass."""
    if annotation in (Any, inspect.Parameter.empty) or not isinstance(annotation, type | UnionType):
        return True
    return isinstance(value, annotation)


class SeptetPlugin(SimplePlugin):
    """Gives the data converter to clients, workers and replays, and the workflows to workers and replays.

    The plugin's interceptors observe a client's own calls and all workers of the client.

    A client passes its plugin to its workers, so do not pass the plugin to a worker. Pass it to a replayer and to
    a test's environment. If the caller gives workflows, only these are served. The plugin has no activities: an
    activity belongs to one queue, but every worker of the client would get the plugin's activities.
    """

    def __init__(
        self,
        task_queue: str = "",
        interceptors: Sequence[ClientInterceptor | WorkerInterceptor] = (),
        codec: SealingCodec | None = None,
    ) -> None:
        """Set the queue of work orders; of a client's workers, only this queue's worker gets all workflows."""
        super().__init__(
            "septet",
            data_converter=partial(pydantic_values, codec),
            workflows=lambda chosen: chosen or _WORKFLOWS,
            workflow_runner=partial(_sandbox, codec is not None and codec.refuses_unsealed),
            interceptors=[*interceptors, SignalInputChecks()],
        )
        self._task_queue = task_queue

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Add all workflows to the worker of the plugin's queue; other workers keep their own."""
        own = config.get("workflows", ())
        configured = super().configure_worker(config)
        if config["task_queue"] != self._task_queue:
            configured["workflows"] = own
        return configured


def serving_options(settings: Settings) -> dict[str, Any]:
    """Return the options of a client whose workers serve the settings' queue; serve metrics if they are on.

    Raises:
        InvalidInputError: The keys that seal payloads cannot be read; or traces are on, and their packages are not
            installed.
        MetricsAddressError: The metrics address of the settings cannot be used.
    """
    heartbeat, metrics = heartbeat_seconds(settings.probe_seconds), settings.metrics
    runtime = quiet_runtime(heartbeat) if metrics is None else measured_runtime(heartbeat, metrics)
    codec = codec_of(settings, serves=True)
    plugin = SeptetPlugin(settings.task_queue, [*observers(settings), activity_observer(settings)], codec)
    return {"runtime": runtime, "plugins": [plugin]}


def _sandbox(refuses_unsealed: bool, runner: WorkflowRunner | None) -> WorkflowRunner:
    """Return the SDK's sandbox with our modules passed through; return a `runner` of another kind unchanged."""
    if runner is not None and not isinstance(runner, SandboxedWorkflowRunner):
        return runner
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*_PASSED_THROUGH)
    if refuses_unsealed:
        return SandboxedWorkflowRunner(restrictions, runner_class=SealRequiringRunner)
    return SandboxedWorkflowRunner(restrictions)


class SealRequiringRunner(UnsandboxedWorkflowRunner):
    """Runs workflows that refuse all unsealed input."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Return the instance that runs one workflow and refuses unsealed input."""
        return _SealRequiringInstance(super().create_instance(det))


class _SealRequiringInstance(WorkflowInstance):
    def __init__(self, run: WorkflowInstance) -> None:
        self._run: Final = run

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        for job in act.jobs:
            mark(job)
        return self._run.activate(act)

    def get_serialization_context(self, command_info: Any) -> SerializationContext | None:
        return self._run.get_serialization_context(command_info)

    def get_external_store_context(self, command_info: Any) -> Any:
        return self._run.get_external_store_context(command_info)

    def get_info(self) -> workflow.Info:
        return self._run.get_info()


def mark(job: WorkflowActivationJob) -> None:
    """Replace a missing input of an update, or an unsealed result, by a payload that is refused.

    A result is unsealed if it has no value, or is a failure with an unsealed message. A replayed update is
    not changed, because a worker has accepted it already.
    """
    if job.HasField("do_update"):
        if job.do_update.run_validator and not job.do_update.input:
            job.do_update.input.append(_unsealed())
    elif job.HasField("resolve_activity"):
        _mark_result(job.resolve_activity.result)
    elif job.HasField("resolve_child_workflow_execution"):
        _mark_result(job.resolve_child_workflow_execution.result)


def _mark_result(result: ActivityResolution | ChildWorkflowResult) -> None:
    """Replace an unsealed result by a payload that the payload converter refuses, so that the workflow fails."""
    has_no_value = result.HasField("completed") and not result.completed.HasField("result")
    if has_no_value or (result.HasField("failed") and not _is_sealed(result.failed.failure)):
        result.completed.result.CopyFrom(_unsealed())


def _is_sealed(failure: Failure) -> bool:
    """Return whether a failure was sealed, or comes from the server itself, such as a time-out."""
    if not failure.HasField("cause"):
        return False
    cause = failure.cause
    if not cause.HasField("application_failure_info"):
        return cause.WhichOneof("failure_info") is not None
    return cause.HasField("encoded_attributes") and refusal_of(cause.encoded_attributes.metadata) is None


def _unsealed() -> Payload:
    return Payload(metadata=NOTHING_SEALED)
