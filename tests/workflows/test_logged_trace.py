"""A workflow's log with traces on, in its own process, because a process sets logging up once."""

import asyncio
import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from temporalio.client import Client

pytestmark = pytest.mark.asyncio(loop_scope="session")

_PROGRAM = """
import asyncio
import os
import pathlib
import sys

from opentelemetry.trace import format_trace_id
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker

from septet.settings import Settings
from workers.observing.logs import set_up_logs
from workers.connection.plugin import SeptetPlugin
from workers.observing.traces import road_to, tracing


@workflow.defn(name="WorkOrder", sandboxed=False)
class WorkOrder:
    @workflow.run
    async def run(self) -> str:
        workflow.logger.warning("something_to_say")
        return workflow.info().run_id


async def main(address: str, queue: str) -> None:
    settings = Settings(state_dir=pathlib.Path("."), log_format="json", traces="http://127.0.0.1:9")
    set_up_logs(settings)
    client = await Client.connect(address, plugins=[SeptetPlugin(queue, tracing(settings, settings.traces))])
    async with Worker(client, task_queue=queue, workflows=[WorkOrder]):
        with road_to(settings.traces).tracer.start_as_current_span("somebody's command") as span:
            run_id = await client.execute_workflow(WorkOrder.run, id=queue, task_queue=queue)
    print(run_id, format_trace_id(span.get_span_context().trace_id), flush=True)
    os._exit(0)  # an interpreter that is taken apart under the SDK's threads is aborted now and then


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_line_of_a_workflow_says_which_trace_it_is_of(client: Client, tmp_path: Path) -> None:
    """The line names the trace of the client that started the workflow, and the run of the workflow."""
    program = tmp_path / "traced.py"
    program.write_text(_PROGRAM)
    command = [sys.executable, str(program), client.service_client.config.target_host, uuid.uuid4().hex]
    ended = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, check=True, timeout=60, text=True
    )
    (line,) = [json.loads(each) for each in ended.stderr.splitlines() if "something_to_say" in each]
    assert [line["run_id"], line["trace_id"]] == ended.stdout.split()
    assert line["workflow"] == "WorkOrder"
