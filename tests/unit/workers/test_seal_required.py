import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import (
    ActivityFailureInfo,
    ApplicationFailureInfo,
    CanceledFailureInfo,
    ChildWorkflowExecutionFailureInfo,
    Failure,
    TimeoutFailureInfo,
)
from temporalio.bridge.proto.activity_result import ActivityResolution
from temporalio.bridge.proto.child_workflow import ChildWorkflowResult
from temporalio.bridge.proto.workflow_activation import WorkflowActivationJob

from septet.contracts.seal import refusal_of, refusing_metadata
from workers.connection.plugin import mark

OPENED = Payload(metadata={"encoding": b"json/plain"}, data=b'{"message": "the disk is full"}')
IN_CLEAR = Payload(metadata=refusing_metadata(OPENED.metadata), data=OPENED.data)


def failed(cause: Failure | None) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    failure = Failure(activity_failure_info=ActivityFailureInfo(activity_id="build_plan-1"), cause=cause)
    job.resolve_activity.result.failed.failure.CopyFrom(failure)
    return job


def of_application(words: Payload | None) -> Failure:
    return Failure(
        message="Encoded failure",
        encoded_attributes=words,
        application_failure_info=ApplicationFailureInfo(type="DiskFull"),
    )


def is_refused(result: ActivityResolution | ChildWorkflowResult) -> bool:
    return result.HasField("completed") and refusal_of(result.completed.result.metadata) is not None


@pytest.mark.parametrize(
    ("cause", "refused"),
    [
        (of_application(OPENED), False),
        (of_application(IN_CLEAR), True),
        (of_application(None), True),
        (None, True),
        (Failure(message="Encoded failure"), True),
        (Failure(timeout_failure_info=TimeoutFailureInfo()), False),
        (Failure(canceled_failure_info=CanceledFailureInfo()), False),
    ],
    ids=["sealed", "in clear", "bare", "none", "of no kind", "timed out", "cancelled"],
)
def test_a_failure_is_believed_that_was_sealed_or_is_the_servers(cause: Failure | None, *, refused: bool) -> None:
    """A failure that is neither sealed nor a timeout or cancel of the server is refused."""
    job = failed(cause)
    mark(job)
    assert is_refused(job.resolve_activity.result) == refused


def test_a_child_is_heard_as_an_activity_is() -> None:
    """A child's result without a value and its unsealed failure are refused; its sealed failure is accepted."""
    cases = ((of_application(OPENED), False), (of_application(None), True), (None, True))
    for cause, refused in cases:
        job = WorkflowActivationJob()
        result = job.resolve_child_workflow_execution.result
        if cause is None:
            result.completed.SetInParent()
        else:
            child = ChildWorkflowExecutionFailureInfo()
            result.failed.failure.CopyFrom(Failure(child_workflow_execution_failure_info=child, cause=cause))
        mark(job)
        assert is_refused(job.resolve_child_workflow_execution.result) == refused


def test_an_accepted_update_is_carried_out_in_each_replay() -> None:
    """An update without input is marked before its validator, and not in a replay."""
    for validates in (True, False):
        job = WorkflowActivationJob()
        job.do_update.run_validator = validates
        mark(job)
        assert len(job.do_update.input) == validates
