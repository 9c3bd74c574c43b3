import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.otlp_collector import CollectedSpan, Collector, collector
from fakes.repositories import Origin
from fakes.septet_command import Septet
from fakes.shared_server import Host
from fakes.waiting import until

pytestmark = pytest.mark.faces

ROLES = ["classifier", "planner", "plan_finder", "branch_generator", "implementor", "committer", "pr_creator"]
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
    """Return the names of a span's ancestors, from the nearest to the root."""
    by_id = {each.span_id: each for each in collected.spans}
    names = []
    while span.parent_id:
        span = by_id[span.parent_id]
        names.append(span.name)
    return names


def test_a_work_order_is_one_trace_from_the_client_to_each_tool_call(host: Host, origin: Origin) -> None:
    """Below the starting command's span are the work order, its activities, their agents and the agents' tool calls."""
    with collector() as collected:
        traces = {"SEPTET_TRACES": collected.url}
        host.scenario("wo-traced", classify_issue={"malformed": "truncated"})
        with host.worker(SEPTET_LOG_FORMAT="json", **traces) as worker:
            client = Septet(host.septet.root, {**host.septet.extra, **traces})
            done = client(
                "run", "--repo", origin.bare, "--title", TITLE, "--id", "wo-traced", "--wait", "--json"
            ).json["task"]
            assert done["status"] == "completed"
            assert worker.end(signal.SIGTERM) == 0
        root = collected.named("StartWorkflow:WorkOrder")[0]
        (order,) = collected.named("invoke_workflow WorkOrder")
        assert order.attributes["gen_ai.agent.name"] == "WorkOrder"
        agents = [
            span for span in collected.spans if span.attributes.get("gen_ai.operation.name") == "invoke_agent"
        ]
        tools = [
            span for span in collected.spans if span.attributes.get("gen_ai.operation.name") == "execute_tool"
        ]
        assert (order.parent_id, order.trace_id) == (root.span_id, root.trace_id)
        assert {span.trace_id for span in (*agents, *tools)} == {root.trace_id}
        names = [
            span.name.removeprefix("invoke_agent ") for span in sorted(agents, key=lambda span: span.started_ns)
        ]
        assert names == ["classifier", *ROLES], "the first one has a finalizer"
        implementor = next(span for span in agents if span.name == "invoke_agent implementor")
        above = ["RunActivity:implement_plan", order.name, root.name]
        assert ancestors(collected, implementor) == above
        assert (order.kind, implementor.kind, implementor.attributes["septet.agent"]) == (
            "INTERNAL",
            "CLIENT",
            "scripted",
        )
        assert tools
        assert all(ancestors(collected, tool)[0].startswith("invoke_agent ") for tool in tools)
        assert {ancestors(collected, tool)[-2] for tool in tools} == {order.name}
        step = next(step for step in done["steps"] if step["step"] == "implement_plan")
        assert implementor.attributes["gen_ai.conversation.id"] == step["session_id"]
        assert implementor.attributes["gen_ai.usage.output_tokens"] == step["usage"]["output_tokens"]
        assert implementor.ended_ns > implementor.started_ns
        assert (
            sum(span.attributes["gen_ai.usage.output_tokens"] for span in agents) == done["usage"]["output_tokens"]
        )
        assert "Lovelace" not in repr(collected.spans), "no span holds a text of users"
    lines = [json.loads(line) for line in worker.errors]
    of_activities = [line for line in lines if line.get("work_order_id") == "wo-traced" and "activity" in line]
    assert {line.get("trace_id") for line in of_activities} == {root.trace_id}


def test_a_work_order_of_temporals_own_command_line_is_one_trace_too(host: Host, origin: Origin) -> None:
    """Without a client's trace, the run's id names the trace; a failed work order is marked as an error."""
    with collector() as collected:
        with host.worker(SEPTET_TRACES=collected.url) as worker:
            host.scenario("wo-plain", implement_plan=[{"refuse": "No."}, {"refuse": "No."}])
            assert host.septet.closed(host.start(origin, "wo-plain"))["status"] == "failed"
            until(lambda: collected.named("invoke_workflow WorkOrder"))
            assert worker.end(signal.SIGTERM) == 0
        (order,) = collected.named("invoke_workflow WorkOrder")
        assert (order.is_error, order.attributes["error.type"]) == (True, "ApplicationError")
        assert (order.parent_id, order.trace_id) == ("", order.attributes["temporalRunID"].replace("-", ""))
        agents = [span for span in collected.spans if span.name.startswith("invoke_agent")]
        assert {span.trace_id for span in agents} == {order.trace_id}
        refused = [span for span in agents if span.name.endswith("implementor")]
        assert [(span.is_error, span.attributes["error.type"]) for span in refused] == [(True, "refused")] * 2
        assert all(ancestors(collected, span)[-1] == order.name for span in agents)


def test_a_cancelled_work_order_has_its_root_and_one_that_goes_on_has_none_yet(host: Host, origin: Origin) -> None:
    """A cancelled work order is marked as an error; a worker that stops ends no work order's trace."""
    with collector() as collected:
        with host.worker(SEPTET_TRACES=collected.url) as worker:
            for order in ("wo-stopped", "wo-goes-on"):
                host.scenario(order, classify_issue={"waits": True})
            host.septet.until_works(host.start(origin, "wo-stopped"), "1-classify_issue-1")
            assert host.septet.cancelled("wo-stopped")["status"] == "cancelled"
            host.septet.until_works(host.start(origin, "wo-goes-on"), "1-classify_issue-1")
            assert worker.end(signal.SIGTERM) == 0
        ended = collected.named("invoke_workflow WorkOrder")
    assert [(each.attributes["temporalWorkflowID"], each.is_error) for each in ended] == [("wo-stopped", True)]


def test_a_collector_that_is_away_holds_nothing_up(host: Host, origin: Origin) -> None:
    """Work orders complete, and a command ends, although no collector takes the traces."""
    away = {"SEPTET_TRACES": "http://127.0.0.1:9"}
    with host.worker(**away) as worker:
        assert host.septet.closed(host.start(origin, "wo-untraced"))["status"] == "completed"
        traced = Septet(host.septet.root, {**host.septet.extra, **away})
        assert traced("show", "wo-untraced", "--json").json["task"]["status"] == "completed"
        assert worker.end(signal.SIGTERM) == 0


def test_without_the_packages_the_setting_names_them() -> None:
    """The packages of traces are an extra: without them the error says how to install them."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert "septet[otel]" in done.stdout
