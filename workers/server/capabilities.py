"""The abilities of a Temporal server, and the services of a host that follow from them."""

from typing import Final

import structlog
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from septet.contracts.workspace import DELIVERS_CANCELS, END_WORK, LIVENESS, PULL_REQUESTS
from workers.server.preflight import lacks_attribute
from workflows.wire.search_attributes import HOST

_PROBES: Final = "Work orders ask their hosts themselves whether they are there, with timers in their histories."

_log = structlog.get_logger()


async def host_services(client: Client) -> tuple[str, ...]:
    """Return the services that a host's workspaces announce on this server.

    On a server that pushes cancels, the host does not deliver cancels. On a server that lists workers and has the
    search attribute of hosts, work orders do not probe hosts. An ability that cannot be checked counts as missing.
    """
    try:
        request = DescribeNamespaceRequest(namespace=client.namespace)
        capabilities = (await client.workflow_service.describe_namespace(request)).namespace_info.capabilities
        lacks_host = await lacks_attribute(client, HOST)
    except RPCError as error:
        _log.warning("server_not_described", error=error.message, consequence=_PROBES)
        return END_WORK, PULL_REQUESTS, DELIVERS_CANCELS
    services = [END_WORK, PULL_REQUESTS]
    if not capabilities.worker_commands:
        services.append(DELIVERS_CANCELS)
    if not capabilities.worker_heartbeats:
        _log.warning("hosts_are_probed", reason="the server does not list workers", consequence=_PROBES)
    elif lacks_host:
        remedy = "Run `septet worker --register`, then start the workers again."
        _log.warning("hosts_are_probed", reason=f"{HOST.name} is missing", consequence=_PROBES, remedy=remedy)
    else:
        services.append(LIVENESS)
    return tuple(services)
