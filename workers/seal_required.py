"""Where workers refuse what is not sealed: an update without input has nothing that could be sealed."""

from typing import Final

from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    HandleUpdateInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from septet.contracts.seal import UNSEALED_INPUT

_NOTHING: Final = "The input is refused: there is none that could be sealed. Give one, such as {}."


class SealRequired(Interceptor):
    """Refuses updates that come without input; a validator alone does, so that no replay differs by it."""

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 -- the SDK's own name
    ) -> type[WorkflowInboundInterceptor]:
        """Return what stands before the validators of workflows."""
        del input
        return _SealRequiredInbound


class _SealRequiredInbound(WorkflowInboundInterceptor):
    def handle_update_validator(self, input: HandleUpdateInput) -> None:  # noqa: A002 -- the SDK's own name
        """Refuse what is empty, and leave all else to the validator."""
        if not input.args:
            raise ApplicationError(_NOTHING, type=UNSEALED_INPUT, non_retryable=True)
        super().handle_update_validator(input)
