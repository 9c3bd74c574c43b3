import json
from pathlib import Path

from septet.agents.runs.folders import Run
from septet.agents.runs.refusals import record_refusals
from septet.agents.supervisor.network_log import NETWORK_LOG
from septet.contracts.names import Step
from septet.contracts.steps import StepCall
from septet.contracts.workspace import Workspace
from septet.telemetry.recorder import RECORDER

CALL = StepCall(
    step=Step.IMPLEMENT_PLAN,
    workspace=Workspace(
        work_order_id="wo-1",
        host="h",
        task_queue="q",
        repository="/r",
        forge="local",
        project="r",
        base_branch="main",
        base_sha="0" * 40,
        path="/w",
        agent="claude",
    ),
)


def test_the_hosts_that_a_run_was_refused_are_counted(tmp_path: Path) -> None:
    """Each host that a sandbox's proxy refused counts once for a run; those that were let through do not."""
    lines = [
        {"host": "evil.example", "port": 443, "allowed": False},
        {"host": "evil.example", "port": 443, "allowed": False},
        {"host": "other.example", "port": 80, "allowed": False},
        {"host": "api.example", "port": 443, "allowed": True},
    ]
    (tmp_path / NETWORK_LOG).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    taken: list[tuple[str, float, dict[str, str]]] = []
    RECORDER.send_to(lambda metric, value, labels: taken.append((metric.name, value, dict(labels))))
    try:
        record_refusals(CALL, Run(tmp_path, None))
        record_refusals(CALL, Run(tmp_path / "none", None))
    finally:
        RECORDER.send_to(None)
    assert taken == [("septet_proxy_refusals", 2, {"step": "implement_plan", "agent": "claude"})]
