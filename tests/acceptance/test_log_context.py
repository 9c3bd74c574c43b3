import json
import signal
from typing import Any

import pytest
from fakes.repositories import Origin
from fakes.shared_server import Host

from septet.contracts.names import Step

pytestmark = pytest.mark.faces

ORDER = "wo-logged"
STEPS = {step.value for step in Step}


def test_each_line_about_a_work_order_says_where_it_belongs(host: Host, origin: Origin) -> None:
    """Each line names work order, workflow, run, activity and attempt; lines of steps also name step and agent."""
    with host.worker(SEPTET_LOG_FORMAT="json") as worker:
        host.scenario(ORDER, classify_issue={"malformed": "truncated"}, implement_plan=[{"refuse": "No."}, {}])
        assert host.septet.closed(host.start(origin, ORDER))["status"] == "completed"
        assert worker.end(signal.SIGTERM) == 0
    lines: list[dict[str, Any]] = [json.loads(line) for line in worker.errors if ORDER in line]
    assert {"result_text_extracted", "step_not_done", "rescue_taken"} <= {line["event"] for line in lines}
    keys = {"work_order_id", "workflow", "run_id", "activity", "attempt"}
    assert [line for line in lines if not keys <= line.keys()] == []
    own = [line for line in lines if line["work_order_id"] == ORDER]
    assert {line["work_order_id"] for line in lines} <= {ORDER, f"{ORDER}/pr"}
    assert {(line["workflow"], line["attempt"]) for line in own} == {("WorkOrder", 1)}
    assert len({line["run_id"] for line in own}) == 1
    of_steps = [line for line in own if line["activity"] in {*STEPS, "finalize_json"}]
    assert {line["activity"] for line in of_steps} == {*STEPS, "finalize_json"} - {"classify_issue"}
    for line in of_steps:
        step = "classify_issue" if line["activity"] == "finalize_json" else line["activity"]
        assert (line.get("step"), line.get("agent")) == (step, "scripted"), line
