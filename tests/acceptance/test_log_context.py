import json
import signal
from typing import Any

import pytest
from fakes.repositories import Origin
from fakes.shared_server import Host

pytestmark = pytest.mark.faces


def test_each_line_of_a_step_says_where_it_belongs(host: Host, origin: Origin) -> None:
    """Work order, workflow, run, activity, attempt, step and agent are on every line that is logged during a step."""
    with host.worker(SEPTET_LOG_FORMAT="json") as worker:
        host.scenario("wo-logged", classify_issue={"malformed": "truncated"})
        assert host.septet.closed(host.start(origin, "wo-logged"))["status"] == "completed"
        assert worker.end(signal.SIGTERM) == 0
    lines: list[dict[str, Any]] = [json.loads(line) for line in worker.errors]
    extracted = [line for line in lines if line["event"] == "result_text_extracted"]
    assert [line["activity"] for line in extracted[:2]] == ["finalize_json", "build_plan"]
    for line in extracted:
        assert line["work_order_id"] == "wo-logged"
        assert (line["workflow"], line["attempt"], line["agent"]) == ("WorkOrder", 1, "scripted")
        assert line["run_id"]
    assert len({line["run_id"] for line in extracted}) == 1
    of_steps = [
        line for line in lines if line.get("activity") in {"classify_issue", "finalize_json", "build_plan"}
    ]
    assert {line.get("step") for line in of_steps} == {"classify_issue", "build_plan"}
    assert {line.get("agent") for line in of_steps} == {"scripted"}
