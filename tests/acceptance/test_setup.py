"""A repository's set-up under workers that die."""

import pytest
from fakes.repositories import Origin
from fakes.septet_command import Septet
from fakes.waiting import until

from septet.contracts.names import Step

pytestmark = pytest.mark.recovery


@pytest.mark.law
def test_set_up_of_a_killed_worker_runs_again_and_no_agent_does(septet: Septet, origin: Origin) -> None:
    """The next worker finds the workspace, removes the first set-up's files, and pays each agent once."""
    script = "[ ! -e half.txt ] || exit 9\ntouch half.txt\nwhile [ ! -e go.log ]; do sleep 0.05; done\n"
    settings = 'setup = ["sh install.sh"]\n'
    origin.push({".septet/septet.toml": settings, "install.sh": script, ".gitignore": "*.log\n"})
    records = septet.state / "runs" / "wo-set-up" / "setup"
    workspace = septet.state / "workspaces" / "wo-set-up"
    with septet.up() as first:
        septet.start(origin, "wo-set-up")
        until((records / "1" / "stdout.jsonl").exists)
        until((workspace / "half.txt").exists)
        first.kill()
        with septet.up():
            until((records / "2" / "stdout.jsonl").exists)
            (workspace / "go.log").touch()
            task = septet.closed("wo-set-up")
    assert task["status"] == "completed"
    assert septet.runs("wo-set-up") == [*(f"{step.number}-{step.value}-1" for step in Step), "setup"]
    assert sorted(path.name for path in records.iterdir()) == ["1", "2"]
