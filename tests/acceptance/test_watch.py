import json
import signal
from pathlib import Path
from typing import Any

import pytest
from fakes.command_lines import leaves
from fakes.repositories import Origin
from fakes.septet_command import WITHIN_SECONDS, Septet

from clients.cli.commands import find_command
from clients.cli.parsing.help import help_of

pytestmark = pytest.mark.faces

Task = dict[str, Any]


def test_a_watch_on_another_host_says_what_it_cannot_see(served: Septet, done: Task, tmp_path: Path) -> None:
    """A watch with another state directory names the host that has plan, changes and agent."""
    second = Septet(tmp_path / "second", {"TEMPORAL_ADDRESS": served.address})
    host = (served.state / "host-id").read_text(encoding="ascii").strip()
    ended = second("watch", done["id"])
    assert ended.code == 0, ended
    assert f"are not on this host. On host {host}, run: septet watch {done['id']}" in ended.out
    last = json.loads(second("watch", done["id"], "--json").out.splitlines()[-1])
    assert (last["elsewhere"], last["plan"], last["diff"]) == (host, None, None)
    assert json.loads(served("watch", done["id"], "--json").out.splitlines()[-1])["elsewhere"] == ""


def test_a_watch_for_programs_is_one_object_a_line(served: Septet, origin: Origin, tmp_path: Path) -> None:
    """Each change is one JSON object with plan, changes and log entries; the last object is the closed work order."""
    gate = tmp_path / "gate"
    served.start(origin, "wo-objects", title="Wait for me", implement_plan={"wait_for": str(gate)})
    with served.started("watch", "wo-objects", "--json") as process:
        assert process.stdout is not None
        looks = [json.loads(process.stdout.readline())]
        while looks[-1]["running_step"] != "implement_plan":
            looks.append(json.loads(process.stdout.readline()))
        gate.touch()
        looks += [json.loads(line) for line in process.stdout]
        assert process.wait(WITHIN_SECONDS) == 0
    assert all(look["ok"] for look in looks)
    assert looks[-1]["task"]["status"] == "completed"
    assert looks[-1]["plan"]["path"] == looks[-1]["task"]["plan_path"]
    assert looks[-1]["plan"]["path"] in {file["path"] for file in looks[-1]["diff"]["files"]}
    ids = [entry["id"] for look in looks for entry in look["log_entries"]]
    assert len(ids) == len(set(ids)) > 7


def test_a_watch_of_a_failed_work_order_fails(served: Septet, origin: Origin) -> None:
    """As with `--wait`, a failed work order exits with 1, with its error on the last line."""
    order = served.scenario("wo-fails", {"steps": {"implement_plan": {"refuse": "The plan contradicts itself."}}})
    served("run", "--repo", origin.bare, "--title", "No", "--id", order, "--json")
    ended = served("watch", order, "--json")
    last = json.loads(ended.out.splitlines()[-1])
    assert (ended.code, last["ok"], last["task"]["status"]) == (1, False, "failed")
    assert last["error"]["message"]


def test_a_followed_board_shows_what_changes(served: Septet, origin: Origin, done: Task, tmp_path: Path) -> None:
    """Each board is one object; a work order that starts meanwhile is on a later board; Ctrl-C exits with 130."""
    gate = tmp_path / "gate"
    with served.started("board", "--follow", "--json") as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert any(task["id"] == done["id"] for task in first["stages"]["review"])
        served.start(origin, "wo-followed-board", title="Wait for me", implement_plan={"wait_for": str(gate)})
        board = first
        while not any(task["id"] == "wo-followed-board" for task in board["stages"]["executing"]):
            board = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.wait(WITHIN_SECONDS) == 130
    gate.touch()
    assert served.closed("wo-followed-board")["status"] == "completed"


def test_steps_say_what_show_has_no_room_for(served: Septet, done: Task) -> None:
    """`steps` shows each step's whole result, session, tokens by kind and changed files."""
    shown = served("steps", "wo-done").out
    for step in done["steps"]:
        assert " ".join(step["output"].split()) in shown
        assert f"session {step['session_id']}" in shown
    assert shown.count(" in, ") == shown.count("  agent") == len(done["steps"])
    assert "app.py (update)" in shown or "(create)" in shown


def test_each_command_has_an_example() -> None:
    """`--help` of each command ends with one example that begins with the command itself."""
    shown = {command: help_of(find_command(command)[0], command).split("Example: ") for command in leaves()}
    assert [command for command, parts in shown.items() if len(parts) != 2] == []
    assert [command for command, parts in shown.items() if f"septet {' '.join(command)}" not in parts[1]] == []
