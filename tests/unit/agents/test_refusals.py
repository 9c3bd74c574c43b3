import json
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.opened_workspace import WORKSPACE
from fakes.run_records import RECORD
from fakes.taken_values import taken_values

from septet.agents.proxy.network_log import NETWORK_LOG
from septet.agents.runs.folders import Run
from septet.agents.runs.logs import record_refusals, recording_refusals, refusal_note
from septet.contracts.names import Step
from septet.contracts.steps import StepCall
from septet.errors import ForgeError
from septet.telemetry.metrics import PROXY_REFUSALS

CALL = StepCall(step=Step.IMPLEMENT_PLAN, workspace=WORKSPACE)


def test_the_hosts_that_a_run_was_refused_are_counted(tmp_path: Path) -> None:
    """Each host that the proxy refused counts once for a run; allowed hosts do not count."""
    run = Run(refuse(tmp_path / "1", "evil.example", "evil.example", "other.example"), None)
    with (run.folder / NETWORK_LOG).open("a", encoding="utf-8") as log:
        log.write('\n{"host": "api.example", "port": 443, "allowed": true}')
    with taken_values(PROXY_REFUSALS) as taken:
        with recording_refusals(CALL, run), recording_refusals(CALL, Run(tmp_path / "none", None)):
            assert taken == [], "checks of its work are to run"
    assert taken == [(2, {"step": "implement_plan", "agent": "claude"})]


def test_a_run_that_is_settled_again_counts_only_what_is_new(tmp_path: Path) -> None:
    """While a forge is away, a step and its checks run again and again; each refused host counts once."""
    run = Run(refuse(tmp_path / "1", "pypi.example"), replace(RECORD, agent="codex"))
    with taken_values(PROXY_REFUSALS) as taken:
        for _ in range(2):
            with pytest.raises(ForgeError), recording_refusals(CALL, run):
                raise ForgeError("The forge is away.")
        refuse(run.checks / "1", "npm.example", "pypi.example")
        record_refusals(CALL, run)
    assert taken == [(1, {"step": "implement_plan", "agent": "codex"})] * 2, "the agent is that of the run"


def refuse(folder: Path, *hosts: str) -> Path:
    folder.mkdir(parents=True)
    lines = (json.dumps({"host": host, "port": 443, "allowed": False, "why": "not in the list"}) for host in hosts)
    (folder / "network.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_the_first_agent_is_told_what_set_up_was_refused(tmp_path: Path) -> None:
    """The first agent's prompt names the hosts refused to the set-up; later prompts name new ones only."""
    setup = tmp_path / "setup"
    assert refusal_note(setup, []) == ""
    refuse(setup / "1", "npm.example")
    refuse(setup / "2", "pypi.example")
    assert "npm.example:443, pypi.example:443." in refusal_note(setup, [])
    first = Run(refuse(tmp_path / "1", "npm.example", "evil.example"), None)
    note = refusal_note(setup, [first])
    assert "evil.example:443" in note
    assert "npm.example" not in note
    refuse(first.checks / "1", "index.example")
    assert "evil.example:443, index.example:443." in refusal_note(setup, [first])
    assert refusal_note(setup, [first, Run(refuse(tmp_path / "2", "evil.example"), None)]) == ""
