"""What workers announce in their heartbeats: their agents and the forges for which they have keys.

One request for the list of workers returns the announcements of all workers.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from temporalio.api.enums.v1 import WorkerStatus
from temporalio.api.worker.v1 import WorkerHeartbeat
from temporalio.api.workflowservice.v1 import ListWorkersRequest
from temporalio.client import Client

from septet.contracts.names import CONTROL

AGENT: Final = "septet-agent/"
DEFAULT: Final = "septet-default-agent/"
MODEL: Final = "septet-default-model/"
SANDBOX: Final = "septet-sandbox/"
METRICS: Final = "septet-metrics"
"""The announcement of a worker that serves metrics."""
FORGE_KEY: Final = "septet-forge-key/"
"""The beginning of an announcement of a key; the forge's address follows. No address means no key."""


@dataclass(frozen=True, slots=True)
class AnnouncedAgents:
    """The agents and forge keys that the worker of one host announces."""

    control_queue: str
    agents: frozenset[str]
    default: str
    """The agent for work orders that name none."""
    sandbox: str = ""
    model: str | None = None
    forge_keys: frozenset[str] | None = None
    """The forge addresses for which the worker has a key; `None` if it does not announce them."""


async def announced_agents(client: Client, task_queue: str) -> list[AnnouncedAgents] | None:
    """Return what a queue's workers announce; `None` if any worker announces no agents.

    A dead worker is still listed for some minutes.

    Raises:
        RPCError: The server does not list workers.
    """
    query = f'TaskQueue STARTS_WITH "{task_queue}-host-"'
    request = ListWorkersRequest(namespace=client.namespace, page_size=1000, query=query)
    page = await client.workflow_service.list_workers(request)
    heartbeats = [info.worker_heartbeat for info in page.workers_info]
    hosts = [
        _agents_of(each)
        for each in heartbeats
        if (each.task_queue.endswith(CONTROL) and each.status == WorkerStatus.WORKER_STATUS_RUNNING)
    ]
    told = [host for host in hosts if host is not None]
    return told if len(told) == len(hosts) and not page.next_page_token else None


def _agents_of(heartbeat: WorkerHeartbeat) -> AnnouncedAgents | None:
    names = [plugin.name for plugin in heartbeat.plugins]
    default = next(_after(DEFAULT, names), None)
    if default is None:
        return None
    sandbox, model = next(_after(SANDBOX, names), ""), next(_after(MODEL, names), None)
    hosts = frozenset(_after(FORGE_KEY, names))
    keys = hosts - {""} if hosts else None
    return AnnouncedAgents(heartbeat.task_queue, frozenset(_after(AGENT, names)), default, sandbox, model, keys)


def _after(prefix: str, names: Iterable[str]) -> Iterator[str]:
    return (name.removeprefix(prefix) for name in names if name.startswith(prefix))
