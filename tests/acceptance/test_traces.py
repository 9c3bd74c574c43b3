import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes.otlp_collector import CollectedSpan, Collector, collector
from fakes.repositories import Origin, make_origin
from fakes.septet_command import Septet
from fakes.shared_server import Host

pytestmark = pytest.mark.faces

ROLES = ["classifier", "planner", "plan_finder", "branch_generator", "implementor", "committer", "pr_creator"]
OPERATION = "gen_ai.operation.name"
TITLE = "The totals of Ada Lovelace are wrong"
WITHOUT = """
import sys
sys.modules["opentelemetry.sdk"] = None
from septet.settings import Settings
from workers.observing.runtime import observers
try:
    observers(Settings(traces="http://127.0.0.1:9"))
except Exception as error:
    print(error)
"""


def ancestors(collected: Collector, span: CollectedSpan) -> list[str]:
    by_id = {each.span_id: each for each in collected.spans}
    names = []
    while span.parent_id:
        span = by_id[span.parent_id]
        names.append(span.name)
    return names


@dataclass(frozen=True)
class Traced:
    """The traces and the log of a worker: of a completed, a failed, a cancelled and a running work order."""

    collected: Collector
    done: dict[str, Any]
    log: list[str]

    def order(self, name: str) -> CollectedSpan:
        (span,) = (each for each in self.ended if each.attributes["temporalWorkflowID"] == name)
        return span

    @property
    def ended(self) -> list[CollectedSpan]:
        return self.collected.named("invoke_workflow WorkOrder")

    def agents(self, order: CollectedSpan) -> list[CollectedSpan]:
        found = [each for each in self.collected.spans if each.attributes.get(OPERATION) == "invoke_agent"]
        of_it = [each for each in found if each.trace_id == order.trace_id]
        return sorted(of_it, key=lambda each: each.started_ns)


@pytest.fixture(scope="module")
def traced(served: Septet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    root = tmp_path_factory.mktemp("traced")
    host, origin = Host.beside(served, root), make_origin(root, "app.git")
    origin.push({"app.py": "print('hello')\n"})
    with collector() as collected:
        traces = {"SEPTET_TRACES": collected.url}
        host.scenario("wo-traced", classify_issue={"malformed": "truncated"})
        host.scenario("wo-plain", implement_plan=[{"refuse": "No."}, {"refuse": "No."}])
        for order in ("wo-stopped", "wo-goes-on"):
            host.scenario(order, classify_issue={"waits": True})
        with host.worker(SEPTET_LOG_FORMAT="json", **traces) as worker:
            client = Septet(host.septet.root, {**host.septet.extra, **traces})
            run = ("run", "--repo", origin.bare, "--title", TITLE, "--id", "wo-traced", "--wait", "--json")
            done = client(*run).json["task"]
            assert host.septet.closed(host.start(origin, "wo-plain"))["status"] == "failed"
            host.septet.until_works(host.start(origin, "wo-stopped"), "1-classify_issue-1")
            assert host.septet.cancelled("wo-stopped")["status"] == "cancelled"
            host.septet.until_works(host.start(origin, "wo-goes-on"), "1-classify_issue-1")
            assert worker.end(signal.SIGTERM) == 0
        yield Traced(collected, done, worker.errors)
    host.end()


def test_a_work_order_is_one_trace_from_the_client_to_each_tool_call(traced: Traced) -> None:
    """Below the starting command's span are the work order, its activities, their agents and the agents' tool calls."""
    collected, done, order = traced.collected, traced.done, traced.order("wo-traced")
    root = collected.named("StartWorkflow:WorkOrder")[0]
    assert order.attributes["gen_ai.agent.name"] == "WorkOrder"
    agents = traced.agents(order)
    tools = [span for span in collected.spans if span.attributes.get(OPERATION) == "execute_tool"]
    tools = [tool for tool in tools if ancestors(collected, tool)[-1] == root.name]
    assert (order.parent_id, order.trace_id) == (root.span_id, root.trace_id)
    assert {span.trace_id for span in tools} == {root.trace_id}
    names = [span.name.removeprefix("invoke_agent ") for span in agents]
    assert names == ["classifier", *ROLES], "the first one has a finalizer"
    implementor = next(span for span in agents if span.name == "invoke_agent implementor")
    assert ancestors(collected, implementor) == ["RunActivity:implement_plan", order.name, root.name]
    kinds = (order.kind, implementor.kind, implementor.attributes["septet.agent"])
    assert kinds == ("INTERNAL", "CLIENT", "scripted")
    assert tools
    assert all(ancestors(collected, tool)[0].startswith("invoke_agent ") for tool in tools)
    step = next(step for step in done["steps"] if step["step"] == "implement_plan")
    assert implementor.attributes["gen_ai.conversation.id"] == step["session_id"]
    assert implementor.attributes["gen_ai.usage.output_tokens"] == step["usage"]["output_tokens"]
    assert implementor.ended_ns > implementor.started_ns
    used = sum(span.attributes["gen_ai.usage.output_tokens"] for span in agents)
    assert (done["status"], used) == ("completed", done["usage"]["output_tokens"])
    assert "Lovelace" not in repr(collected.spans), "no span holds a text of users"
    lines = [json.loads(line) for line in traced.log if line.startswith("{")]
    of_activities = [line for line in lines if line.get("work_order_id") == "wo-traced" and "activity" in line]
    assert {line.get("trace_id") for line in of_activities} == {root.trace_id}


def test_a_work_order_of_temporals_own_command_line_is_one_trace_too(traced: Traced) -> None:
    """Without a client's trace, the run's id names the trace; a failed work order is marked as an error."""
    order = traced.order("wo-plain")
    assert (order.is_error, order.attributes["error.type"]) == (True, "ApplicationError")
    assert (order.parent_id, order.trace_id) == ("", order.attributes["temporalRunID"].replace("-", ""))
    refused = [span for span in traced.agents(order) if span.name.endswith("implementor")]
    assert [(span.is_error, span.attributes["error.type"]) for span in refused] == [(True, "refused")] * 2
    assert all(ancestors(traced.collected, span)[-1] == order.name for span in traced.agents(order))


def test_a_cancelled_work_order_has_its_root_and_one_that_goes_on_has_none_yet(traced: Traced) -> None:
    """A cancelled work order is marked as an error; a worker that stops ends no work order's trace."""
    assert traced.order("wo-stopped").is_error
    names = {each.attributes["temporalWorkflowID"] for each in traced.ended}
    assert names == {"wo-traced", "wo-plain", "wo-stopped"}


def test_a_collector_that_is_away_holds_nothing_up(host: Host, origin: Origin) -> None:
    """Work orders complete, and a command ends, although no collector takes the traces."""
    away = {"SEPTET_TRACES": "http://127.0.0.1:9"}
    with host.worker(**away) as worker:
        assert host.septet.closed(host.start(origin, "wo-untraced", plan_only=True))["status"] == "completed"
        traced = Septet(host.septet.root, {**host.septet.extra, **away})
        assert traced("show", "wo-untraced", "--json").json["task"]["status"] == "completed"
        assert worker.end(signal.SIGTERM) == 0


def test_without_the_packages_the_setting_names_them() -> None:
    """The packages of traces are an extra: without them the error says how to install them."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert "septet[otel]" in done.stdout
