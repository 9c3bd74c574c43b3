"""A usage limit on a machine whose `septet up` is killed at that moment: no agent is started twice."""

import json
import os
import shlex
import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fakes.repositories import Origin
from fakes.scripted_program import write_scripted_program
from fakes.septet_command import ONCE, Septet
from fakes.shell_programs import write_program
from fakes.waiting import until

from septet.contracts.names import Step

pytestmark = [pytest.mark.recovery, pytest.mark.timeout(480), pytest.mark.law]

HEARTBEATS_END_SECONDS = 240.0
"""The server gives out a task again two minutes after it gave the task to a dying worker."""
FIRST, SECOND = "the-first-key", "the-second-key"
LIMITED = """\
#!/bin/sh
# The scripted agent, whose first login begins some work, waits, and meets its usage limit then.
if [ "$SEPTET_SCRIPTED_KEY" = {first} ]; then
    echo half > half.txt
    touch {started}
    export SEPTET_SCRIPTED_SCENARIO={scenario}
    said=$({agent} "$@")
    code=$?
    printf '%s\\n' "$said" | sed 's/API Error: 429[^"]*/Claude AI usage limit reached|{until}/'
    exit $code
fi
exec {agent} "$@"
"""
GIT = """\
#!/bin/sh
# git, which waits at one command for the death of its worker, once, as soon as the limit is told.
case "$*" in *{command}*)
    if [ -e {told} ] && mkdir {held} 2> /dev/null; then
        while kill -0 $PPID 2> /dev/null; do sleep 0.05; done
        exit 1
    fi
esac
exec {git} "$@"
"""
HELD_AT = {"before the work is kept": "check-ignore", "before the rescue is noted": "diff-index"}
"""By moment of the move, a git command that runs at this moment."""
STREAMS = "-p --output-format stream-json --verbose --dangerously-skip-permissions"
BUDGET = ("--budget", "9Mtok", "--body", "Write `went on` into `on.txt`.", "--json")
WORKERS = {"second login": ("scripted", "second"), "second agent": ("command", "")}


@pytest.mark.parametrize(
    ("to", "moment"),
    [
        ("second login", "before it is read"),
        pytest.param("second login", "when it is told", marks=pytest.mark.release),
        ("second agent", "before the work is kept"),
        pytest.param("second agent", "before the rescue is noted", marks=pytest.mark.release),
    ],
)
def test_a_worker_that_is_killed_between_a_usage_limit_and_the_move_starts_one_agent_to_go_on(
    tmp_path: Path, origin: Origin, to: str, moment: str
) -> None:
    """The worker dies before it sees the limit, after it reports the limit, or during the move: one agent continues."""
    limited = LimitedMachine(tmp_path)
    septet = limited.septet(to, holds_git_at=HELD_AT.get(moment))
    with ExitStack() as stack:
        up = stack.enter_context(septet.up())
        begun = septet("run", "--repo", origin.bare, "--title", "Go on", "--id", "wo-1", *BUDGET)
        assert begun.code == 0, begun
        until(limited.started.exists)
        if moment == "before it is read":
            up.kill()
            limited.gate.touch()
            until((limited.run / "exit.json").exists)
        else:
            limited.gate.touch()
            until((limited.told if moment == "when it is told" else limited.held).exists)
            up.kill()
        stack.enter_context(septet.up())
        task = septet.closed("wo-1", HEARTBEATS_END_SECONDS)
        account = septet("budget", "show", "wo-1", "--json").json["budget"]
        kept = septet("rescue", "list", "wo-1", "--json").json["rescues"]
    assert (task["status"], task["error"]) == ("completed", None)
    assert septet.runs("wo-1") == sorted([f"1-{Step.CLASSIFY_ISSUE.value}-2", *ONCE])
    records = [record_of(limited.run.with_name(name)) for name in septet.runs("wo-1")]
    workers = [(record["agent"], record["login"]) for record in records]
    assert workers == [("scripted", ""), *[WORKERS[to]] * 7]
    assert account["total"]["tokens"] == sum(
        task["usage"][f"{kind}_tokens"] for kind in ("input", "output", "cache_read", "cache_write")
    )
    rescues = [rescue["snapshot"] for rescue in task["rescues"]]
    assert rescues == [rescue["snapshot"] for rescue in kept]
    # The first agent's work: kept at the move to another agent, or when the plan alone continues.
    assert len(rescues) == 1


class LimitedMachine:
    """A machine whose first agent waits and then meets its usage limit, with the files that show its progress."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.gate, self.started, self.held = root / "gate", root / "started", root / "held"
        self.run = root / "machine" / "state" / "runs" / "wo-1" / f"1-{Step.CLASSIFY_ISSUE.value}-1"
        self.told = self.run / "limit-told"

    def septet(self, to: str, *, holds_git_at: str | None) -> Septet:
        """Return the machine with a second login or a second agent; git waits at a command for its worker's death."""
        scenario = self._root / "limited.json"
        script = {"wait_for": str(self.gate), "api_error": 429}
        scenario.write_text(json.dumps({"steps": {"*": script}}), encoding="utf-8")
        scripted = write_scripted_program(self._root / "scripted-agent")
        words = {"first": FIRST, "started": self.started, "scenario": scenario, "agent": scripted}
        agent = self._program("agent.sh", LIMITED, until=str(int(time.time() + 3600)), **words)
        env = {"SEPTET_SCRIPTED_KEY": FIRST, "SEPTET_SCRIPTED_PATH": str(agent)}
        if holds_git_at is not None:
            git = str(shutil.which("git"))
            self._program("bin/git", GIT, command=holds_git_at, told=self.told, held=self.held, git=git)
            env |= {"PATH": f"{self._root / 'bin'}:{os.environ['PATH']}"}
        if to == "second login":
            (self._root / "second.env").write_text(f"SEPTET_SCRIPTED_KEY={SECOND}\n", encoding="utf-8")
            env |= {"SEPTET_SCRIPTED_LOGINS": f"second={self._root / 'second.env'}"}
        else:
            env |= {
                "SEPTET_FALLBACK_AGENT": "command",
                "SEPTET_COMMAND": f"{shlex.quote(str(scripted))} {STREAMS}",
            }
        return Septet(self._root / "machine", env)

    def _program(self, name: str, script: str, **words: object) -> Path:
        quoted = {each: shlex.quote(str(word)) for each, word in words.items()}
        return write_program(self._root / name, script.format(**quoted))


def record_of(run: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    return record
