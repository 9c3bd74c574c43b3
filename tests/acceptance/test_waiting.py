"""`run --wait` and `retry --wait`: live work, Ctrl-C with the next commands, and decisions on a plan."""

from pathlib import Path

import pytest
from fakes.repositories import Origin
from fakes.septet_command import Septet
from fakes.shell_programs import write_program
from fakes.terminal import terminal

pytestmark = pytest.mark.faces


def _run(origin: Origin, order: str, *more: str) -> tuple[str, ...]:
    return ("run", "--repo", str(origin.bare), "--title", "Say goodbye", "--id", order, "--wait", *more)


def _waits_at(served: Septet, order: str, gate: Path) -> None:
    served.scenario(order, {"steps": {"implement_plan": {"wait_for": str(gate)}}})


def test_ctrl_c_says_that_the_work_goes_on(served: Septet, origin: Origin, tmp_path: Path) -> None:
    """A person who stops waiting reads that the work order still runs, and the commands to watch and to cancel it."""
    gate = tmp_path / "gate"
    _waits_at(served, "wo-left", gate)
    with terminal(served, *_run(origin, "wo-left")) as person:
        person.until("implement_plan")
        person.interrupt()
        code, painted = person.end()
    assert code == 130
    assert "Stopped waiting; wo-left is still running." in painted
    assert "septet watch wo-left" in painted
    assert "septet cancel wo-left" in painted
    assert served("show", "wo-left", "--json").json["task"]["status"] == "running"
    gate.touch()
    assert served.closed("wo-left")["status"] == "completed"


def test_a_pipe_has_a_line_for_each_change(served: Septet, origin: Origin) -> None:
    """Without a terminal there is a line for each step, and a line with the pull request's address."""
    ended = served(*_run(origin, "wo-piped"))
    lines = ended.out.splitlines()
    assert ended.code == 0
    assert lines[0].startswith("wo-piped started")
    assert sum(line.startswith("✓ ") for line in lines) == 7
    assert any(line.startswith("pull request  file://") for line in lines)
    assert "\x1b" not in ended.out


def test_a_plan_is_reviewed_in_an_editor(served: Septet, origin: Origin, tmp_path: Path) -> None:
    """A person's words above the line in the editor reject the plan with these words."""
    words = '#!/bin/sh\n{ echo "Say which file."; cat "$1"; } > "$1.new" && mv "$1.new" "$1"\n'
    editor = write_program(tmp_path / "editor", words)
    with terminal(served, *_run(origin, "wo-edited", "--approve-plan"), EDITOR=str(editor)) as person:
        person.until("[a]pprove")
        person.type("e")
        person.until("Plan rejected")
        person.until("[a]pprove")
        person.type("q")
        code, painted = person.end()
    assert code == 130
    assert "wo-edited is waiting for your approval" in painted
    assert "septet approve wo-edited" in painted
    history = served("show", "wo-edited", "--json").json["history"]
    assert any("Say which file." in move["why"] and "plan like this" not in move["why"] for move in history)
    served.cancelled("wo-edited")


def test_a_plan_that_is_decided_on_elsewhere_is_asked_about_no_more(served: Septet, origin: Origin) -> None:
    """While one person thinks, another approves: the first sees the work continue."""
    with terminal(served, *_run(origin, "wo-elsewhere", "--approve-plan")) as person:
        person.until("[a]pprove")
        assert served("approve", "wo-elsewhere").code == 0
        code, painted = person.end()
    assert code == 0
    assert "pull request" in painted
