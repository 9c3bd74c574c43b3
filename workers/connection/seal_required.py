"""Where workers refuse what is not sealed: the codec marks payloads, and here is marked what comes without one.

The converter of values and the handlers of updates heed the mark as they heed the codec's. No command is added.
"""

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.activity_result import ActivityResolution
from temporalio.bridge.proto.child_workflow import ChildWorkflowResult
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker._workflow_instance import _WorkflowInstanceImpl

from septet.contracts.seal import NOTHING_SEALED, refusal_of
from workers.builds.workflow_guard import GuardedWorkflowRunner


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
