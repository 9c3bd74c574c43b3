"""A real development server for the tests of workflows."""

import json
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from fakes.activities import Doubles
from fakes.pipeline_line import Line, line_of
from pydantic import JsonValue
from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.testing import WorkflowEnvironment

from workers.connection.plugin import SeptetPlugin
from workers.observing.runtime import quiet_runtime
from workers.server.server import temporal_program
from workflows.wire.search_attributes import ALL

_HEARD_EACH_SECOND = 1.0
_QUICK = {
    "history.transferProcessorMaxPollRPS": 2000,
    "history.timerProcessorMaxTimeShift": "50ms",
    # A deletion waits until the server has noted how far its queue of tasks is.
    "history.transferProcessorUpdateAckInterval": "1s",
}
"""What lets retries, timers and deletions not wait for seconds."""
SEALED = "sealed"
"""The namespace for sealed work orders, so that no other test reads them."""


async def started(config: Mapping[str, JsonValue], *arguments: str) -> WorkflowEnvironment:
    """Start a development server with Septet's search attributes and a dynamic configuration."""
    attributes = [part for key in ALL for part in ("--search-attribute", f"{key.name}={kind(key)}")]
    for key, value in {**_QUICK, **config}.items():
        attributes += ["--dynamic-config-value", f"{key}={json.dumps(value)}"]
    return await WorkflowEnvironment.start_local(
        plugins=[SeptetPlugin()],
        runtime=quiet_runtime(_HEARD_EACH_SECOND),
        dev_server_existing_path=str(temporal_program()),
        dev_server_extra_args=[*attributes, *arguments],
    )


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server() -> AsyncIterator[WorkflowEnvironment]:
    problems = {"system.numConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute": 2}
    async with await started(problems, "--namespace", SEALED) as environment:
        yield environment


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def short_runs() -> AsyncIterator[Client]:
    """A client of a server that suggests a new run of a workflow after 40 events."""
    async with await started({"limit.historyCount.suggestContinueAsNew": 40}) as environment:
        yield environment.client


@pytest.fixture
def doubles() -> Doubles:
    """Doubles of the activities, on a task queue for this test alone."""
    return Doubles(task_queue=f"queue-{uuid.uuid4().hex}")


@pytest_asyncio.fixture(loop_scope="session")
async def client(server: WorkflowEnvironment) -> Client:
    return server.client


@pytest_asyncio.fixture(loop_scope="session")
async def line(client: Client) -> AsyncIterator[Line]:
    """A queue for this test alone, with a worker that runs pipelines."""
    async with line_of(client) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def sealed_client(server: WorkflowEnvironment) -> Client:
    return Client(server.client.service_client, namespace=SEALED, plugins=[SeptetPlugin()])


def kind(key: SearchAttributeKey[Any]) -> str:
    return key.indexed_value_type.name.capitalize()
