"""What a Temporal server can, and what a host therefore serves."""

import structlog
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from septet.contracts.workspace import DELIVERS_CANCELS, END_WORK

_log = structlog.get_logger()


async def host_services(client: Client) -> tuple[str, ...]:
    """Return what the workspaces of a host say that it does, on this server.

    A server that pushes cancels needs nobody else to deliver them. One that does not tell what it can is taken for
    one that can do nothing of it.
    """
    try:
        request = DescribeNamespaceRequest(namespace=client.namespace)
        described = await client.workflow_service.describe_namespace(request)
    except RPCError as error:
        _log.warning("server_not_described", error=error.message)
        return END_WORK, DELIVERS_CANCELS
    pushes = described.namespace_info.capabilities.worker_commands
    return (END_WORK,) if pushes else (END_WORK, DELIVERS_CANCELS)
