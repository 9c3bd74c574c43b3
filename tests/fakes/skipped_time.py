"""A server without waits: when all workflows wait, its clock jumps to the next moment."""

from typing import Any

from temporalio.common import SearchAttributeKey
from temporalio.testing import WorkflowEnvironment

from workers.connection.plugin import SeptetPlugin
from workers.server.server import temporal_program
from workflows.wire.search_attributes import ALL


async def skipping_time() -> WorkflowEnvironment:
    """Start such a server with the search attributes of work orders; as a context it ends with the block."""
    return await WorkflowEnvironment.start_time_skipping_v2(
        plugins=[SeptetPlugin()],
        dev_server_existing_path=str(temporal_program()),
        dev_server_extra_args=[
            *(part for key in ALL for part in ("--search-attribute", f"{key.name}={_kind(key)}")),
            *("--dynamic-config-value", "frontend.WorkflowTimeSkippingEnabled=true"),
            *("--dynamic-config-value", "history.transferProcessorMaxPollRPS=2000"),
        ],
    )


def _kind(key: SearchAttributeKey[Any]) -> str:
    return key.indexed_value_type.name.capitalize()
