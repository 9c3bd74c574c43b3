"""One plugin configures clients, workers and replays alike."""

import asyncio
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes.recorded import PATHS
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowHistory
from temporalio.converter import DataConverter, PayloadCodec
from temporalio.worker import Replayer, Worker

from septet.contracts.names import Step
from septet.contracts.order import WorkOrderInput
from workers.connection.plugin import SeptetPlugin
from workflows.board.board import Board

pytestmark = pytest.mark.asyncio(loop_scope="session")

ALL = {
    *("WorkOrder", "NotificationWorkflow", "PullRequestWorkflow", "Board", "Janitor", "Pipeline"),
    *("Intake", "CommentCommandWorkflow", "TrackerSession", "TrackerPrompt", "TrackerReport"),
    *("Account", "Quota", "Costs"),
}


class Reversed(PayloadCodec):
    """Writes each payload's bytes backwards."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata=each.metadata, data=each.data[::-1]) for each in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return await self.encode(payloads)


def names_of(worker: Worker) -> set[str]:
    return {each.__name__ for each in worker.config(active_config=True).get("workflows", ())}


async def test_only_the_worker_of_work_orders_serves_all_workflows(client: Client) -> None:
    """The worker of the client's queue serves all workflows, a worker that names some serves these, other workers none."""
    queue = uuid.uuid4().hex
    own = Client(client.service_client, plugins=[SeptetPlugin(queue)])
    orders, host = Worker(own, task_queue=queue), Worker(own, task_queue=f"{queue}-host", activities=[nothing])
    board = Worker(own, task_queue=f"{queue}-board", workflows=[Board])
    assert [names_of(each) for each in (orders, host, board)] == [ALL, set(), {"Board"}]


async def test_a_codec_of_a_client_stays(client: Client) -> None:
    """The plugin converts values to payloads, and keeps a client's payload codec."""
    coded = replace(DataConverter.default, payload_codec=Reversed())
    converter = Client(client.service_client, data_converter=coded, plugins=[SeptetPlugin()]).data_converter
    order = WorkOrderInput(repository="/app", title="Totals")
    (payload,) = await converter.encode([order])
    assert payload.data.startswith(b"}")
    assert await converter.decode([payload], [WorkOrderInput]) == [order]
    assert (await converter.encode([Step.BUILD_PLAN]))[0].data == b'"nalp_dliub"'


async def test_a_replay_needs_nothing_but_the_plugin() -> None:
    """A replayer without workflows and without a converter replays a recorded history by the plugin alone."""
    path = PATHS[0]
    history = WorkflowHistory.from_json(f"wo-{path.stem}", path.read_text(encoding="utf-8"))
    await Replayer(workflows=[], plugins=[SeptetPlugin()]).replay_workflow(history)


async def test_a_client_imports_no_workflow() -> None:
    """A command that only queries does not wait for the import of the workers' code."""
    code = "import sys, workers.connection.connection; print('workflows.work_order' in sys.modules)"
    done = await asyncio.to_thread(subprocess.check_output, [sys.executable, "-c", code])
    assert done == b"False\n"


async def test_a_worker_imports_no_cryptography_and_no_http_client_before_it_needs_them() -> None:
    """These modules take ten megabytes of each worker's memory, also without sealing and notifications."""
    code = """if True:
        import sys, clients.cli.main, workers.connection.connection, workers.worker
        print([name for name in ("cryptography", "httpx", "fastapi") if name in sys.modules])"""
    done = await asyncio.to_thread(subprocess.check_output, [sys.executable, "-c", code])
    assert done == b"[]\n"


@activity.defn
async def nothing() -> None: ...
