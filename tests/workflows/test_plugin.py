"""One plugin configures clients, workers and replays alike."""

import asyncio
import subprocess
import sys
import uuid

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from workers.connection.plugin import SeptetPlugin
from workflows.board.board import Board

pytestmark = pytest.mark.asyncio(loop_scope="session")

ALL = {
    *("WorkOrder", "NotificationWorkflow", "PullRequestWorkflow", "Board", "Janitor", "Pipeline"),
    *("Intake", "CommentCommandWorkflow", "TrackerSession", "TrackerPrompt", "TrackerReport"),
    *("Account", "Quota", "Costs"),
}


def names_of(worker: Worker) -> set[str]:
    return {each.__name__ for each in worker.config(active_config=True).get("workflows", ())}


async def test_only_the_worker_of_work_orders_serves_all_workflows(client: Client) -> None:
    """The worker of the client's queue serves all workflows, a worker that names some serves these, other workers none."""
    queue = uuid.uuid4().hex
    own = Client(client.service_client, plugins=[SeptetPlugin(queue)])
    orders, host = Worker(own, task_queue=queue), Worker(own, task_queue=f"{queue}-host", activities=[nothing])
    board = Worker(own, task_queue=f"{queue}-board", workflows=[Board])
    assert [names_of(each) for each in (orders, host, board)] == [ALL, set(), {"Board"}]


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
