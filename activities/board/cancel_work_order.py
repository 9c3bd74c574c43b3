"""Request the cancel of the calling work order from the server: a workflow cannot cancel itself."""

from temporalio import activity

from septet.contracts.decisions import MoveReason


class CancelWorkOrder:
    """The end that a person has requested by a move on the board."""

    @activity.defn(name="cancel_work_order")
    async def run(self, call: MoveReason) -> None:
        """Request the cancel of the running work order from the server. Idempotent; leaves nothing on disk."""
        info = activity.info()
        handle = activity.client().get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
        is_sealed = activity.client().data_converter.payload_codec is not None  # the server would read a reason
        await handle.cancel(reason="" if is_sealed else call.reason_line)
