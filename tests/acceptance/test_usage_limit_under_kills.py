"""A usage limit on a machine whose `septet up` is killed just then: no agent is started twice."""

import json
import shlex
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.repositories import Origin
from fakes.septet_command import PROGRAMS, Running, Septet
from fakes.waiting import until

from septet.contracts.names import Step

pytestmark = [pytest.mark.recovery, pytest.mark.timeout(300), pytest.mark.law]

FIRST, SECOND = "the-first-key", "the-second-key"
LIMITED = """\
#!/bin/sh
# The scripted agent, whose first login waits and meets its usage limit then.
if [ "$SEPTET_SCRIPTED_KEY" = {first} ]; then
    touch {started}
    export SEPTET_SCRIPTED_SCENARIO={scenario}
    said=$({agent} "$@")
    code=$?
    printf '%s\\n' "$said" | sed 's/API Error: 429[^"]*/Claude AI usage limit reached|{until}/'
    exit $code
fi
exec {agent} "$@"
"""


@contextmanager
def running_machine(septet: Septet) -> Iterator["Machine"]:
    """Run `septet up` for as long as the block lasts, however often it is killed; agents outlive that."""
    with ExitStack() as stack:
        yield Machine(septet, stack, stack.enter_context(septet.up()))


class Machine:
    """A machine whose `up` is started again."""

    def __init__(self, septet: Septet, stack: ExitStack, up: Running) -> None:
        self._septet, self._stack, self._up = septet, stack, up

    def kill(self) -> None:
        """Kill `up`, server and all but the agents."""
        self._up.kill()

    def start(self) -> None:
        """Start it again."""
        self._up = self._stack.enter_context(self._septet.up())


@pytest.mark.parametrize("moment", ["before it is read", "when it is told"])
def test_a_worker_that_is_killed_between_a_usage_limit_and_the_move_starts_one_agent_with_the_next_login(
    tmp_path: Path, origin: Origin, moment: str
) -> None:
    """The limit is met with nobody there to see it, or the worker dies as it has told it: one agent goes on."""
    septet, gate, started = limited_machine(tmp_path)
    with running_machine(septet) as machine:
        begun = septet("run", "--repo", origin.bare, "--title", "Go on", "--id", "wo-1", "--json")
        assert begun.code == 0, begun
        until(started.exists)
        first = septet.state / "runs" / "wo-1" / f"1-{Step.CLASSIFY_ISSUE.value}-1"
        if moment == "before it is read":
            machine.kill()
            gate.touch()
            until((first / "exit.json").exists)
        else:
            gate.touch()
            until((first / "limit-told").exists)
            machine.kill()
        machine.start()
        task = septet.closed("wo-1")
    assert (task["status"], task["error"]) == ("completed", None)
    assert septet.runs("wo-1") == sorted(
        [f"1-{Step.CLASSIFY_ISSUE.value}-2", *(f"{step.number}-{step.value}-1" for step in Step)]
    )
    logins = [record_of(first.with_name(name))["login"] for name in septet.runs("wo-1")]
    assert logins == ["", *["second"] * 7]


def limited_machine(root: Path) -> tuple[Septet, Path, Path]:
    """Return a machine with two logins, the file that the first one waits for, and the one that it makes before."""
    gate, started, scenario = root / "gate", root / "started", root / "limited.json"
    script = {"wait_for": str(gate), "api_error": 429}
    scenario.write_text(json.dumps({"steps": {"*": script}}), encoding="utf-8")
    agent = root / "agent.sh"
    words = {"first": FIRST, "started": started, "scenario": scenario, "agent": PROGRAMS / "septet-scripted-agent"}
    quoted = {name: shlex.quote(str(word)) for name, word in words.items()}
    agent.write_text(LIMITED.format(**quoted, until=int(time.time() + 3600)), encoding="utf-8")
    agent.chmod(0o755)
    (root / "second.env").write_text(f"SEPTET_SCRIPTED_KEY={SECOND}\n", encoding="utf-8")
    logins = {"SEPTET_SCRIPTED_KEY": FIRST, "SEPTET_SCRIPTED_LOGINS": f"second={root / 'second.env'}"}
    return Septet(root / "machine", {**logins, "SEPTET_SCRIPTED_PATH": str(agent)}), gate, started


def record_of(run: Path) -> dict[str, Any]:
    """Return what is known of a run since its start."""
    record: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    return record
