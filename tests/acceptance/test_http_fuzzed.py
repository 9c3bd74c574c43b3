"""The HTTP API under schemathesis: its description holds for each request."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.activities import Doubles
from fakes.repositories import Origin
from fakes.septet_command import Septet, free_port
from fakes.waiting import until
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from septet.contracts.lanes import CloseLanes, EnterLane
from septet.contracts.workspace import Workspace
from septet.pipelines.inputs import IssuesRead, ReadIssues
from septet.pipelines.views import PipelineView
from workers.connection.plugin import SeptetPlugin
from workflows.pipeline.workflow import Pipeline
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.work_order.workflow import WorkOrder

pytestmark = pytest.mark.faces

QUEUE = "septet-fuzzed"
WORKFLOWS = [WorkOrder, PullRequestWorkflow, Pipeline]
SECONDS = int(os.environ.get("SEPTET_API_SECONDS", "10"))
"""The seconds of the trial; `make test-api` takes longer."""
SEED = () if "SEPTET_API_SECONDS" in os.environ else ("--seed", "7")
"""The same values in each run; `make test-api` takes new values, and its failure names their seed."""


REFUSES_MORE = (
    *("POST /agent-work-orders", "POST /intakes", "POST /pipelines"),
    *("POST /budgets/set", "POST /budgets/raise", "GET /costs"),
)
"""Operations with rules that no description can state: a path is a repository, a year has a week 53."""
CONFIGURATION = "".join(
    f"""\
[[operations]]
include-name = "{operation}"
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "404", "409", "422", "429", "5xx"]
"""
    for operation in REFUSES_MORE
)


@activity.defn(name="read_issues")
async def read_issues(asked: ReadIssues) -> IssuesRead:
    raise ApplicationError(f"no issues of {asked.repository}", type="NotFound", non_retryable=True)


@activity.defn(name="enter_lane")
async def enter_lane(asked: EnterLane) -> Workspace:
    raise ApplicationError(f"no repository for {asked.visit}", type="Git", non_retryable=True)


@activity.defn(name="note_results")
async def note_results(_some: PipelineView) -> None:
    """Note nothing."""


@activity.defn(name="write_report")
async def write_report(_view: PipelineView) -> None:
    """Write nothing."""


@activity.defn(name="close_lanes")
async def close_lanes(_asked: CloseLanes) -> None:
    """Close nothing."""


LANES: list[Callable[..., Any]] = [read_issues, enter_lane, note_results, write_report, close_lanes]


def start_pipelines(septet: Septet, origin: Origin, gate: Path) -> None:
    assert (
        septet("pipeline", "--repo", origin.bare, "--label", "nobody-has-it", "--id", "pl-failed", "--wait").code
        == 1
    )
    septet.scenario("pl-running-planner", {"steps": {"classify_issue": {"wait_for": str(gate)}}})
    file = septet.root / "issues.json"
    file.write_text(
        json.dumps([{"id": "1", "title": "One", "body": "x"}, {"id": "2", "title": "Two", "body": "y"}])
    )
    assert septet("pipeline", "--repo", origin.bare, "--file", file, "--id", "pl-running").code == 0


@pytest.mark.long
@pytest.mark.timeout(SECONDS + 240)
async def test_nothing_that_is_sent_breaks_what_the_description_says(septet: Septet, origin: Origin) -> None:
    """With completed, running and failed work orders and pipelines, each check of schemathesis holds on each path."""
    gate = septet.root / "gate"
    with septet.up() as up:
        septet.start(origin, "wo-done")
        septet.start(origin, "wo-failed", implement_plan={"refuse": "The plan contradicts itself."})
        septet.start(origin, "wo-running", implement_plan={"wait_for": str(gate)})
        start_pipelines(septet, origin, gate)
        assert septet.closed("wo-failed")["rescues"]
        assert septet.closed("wo-done")["status"] == "completed"
        until((septet.state / "runs" / "wo-running" / "5-implement_plan-1" / "run.json").exists)
        client = await Client.connect(up.address, plugins=[SeptetPlugin()])
        doubles = Doubles(QUEUE)
        async with Worker(
            client, task_queue=QUEUE, workflows=WORKFLOWS, activities=[*doubles.activities(), *LANES]
        ):
            port = str(free_port())
            with septet.beside("serve", "--port", port, SEPTET_TASK_QUEUE=QUEUE) as serving:
                code, told = await fuzzed(septet, serving.api)
        assert code == 0, told
        gate.touch()


async def fuzzed(septet: Septet, api: str) -> tuple[int, str]:
    """Run schemathesis; doubles in the test's worker carry out its work orders."""
    token = (septet.state / "api-token").read_text(encoding="ascii").strip()
    (septet.root / "schemathesis.toml").write_text(CONFIGURATION)
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).parent / "schemathesis", "run", f"{api}/openapi.json",
        "--header", f"Authorization: Bearer {token}", "--checks", "all", "--max-examples", "10",
        "--max-time", str(SECONDS), "--request-timeout", "30", "--generation-database", "none", "--no-color",
        "--suppress-health-check", "all", "--continue-on-failure", *SEED,
        cwd=septet.root, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={
            "PATH": os.environ["PATH"], "HOME": str(septet.root), "NO_PROXY": "127.0.0.1", "COLUMNS": "110",
            "PYTHONPATH": str(Path(__file__).parents[1]), "SCHEMATHESIS_HOOKS": "fakes.api_hooks",
            "SEPTET_ORDERS": "wo-done wo-failed wo-running", "SEPTET_CLOSED_ORDERS": "wo-done wo-failed",
            "SEPTET_PIPELINES": "pl-failed pl-running",
        },
    )  # fmt: skip
    out, _ = await process.communicate()
    return await process.wait(), out.decode(errors="replace")
