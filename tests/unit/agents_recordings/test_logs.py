"""`septet logs` prints the files of any agent in one form, during and after a run, without a server."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from fakes.agent_streams import CLIS
from fakes.run_records import RECORD

from clients.disk.agent_logs import AgentLogs
from clients.disk.runs import refused_in_setup
from septet.agents.runs.folders import Run, Runs
from septet.agents.runs.logs import note_written
from septet.state import StateDir

RECORDINGS: Final = Path(__file__).parents[2] / "data" / "recordings"
SEPTET: Final = Path(sys.executable).with_name("septet")
NOON: Final = 1_735_732_800
EDITED: Final = {name: "edit_bypass" if name in {"claude", "codex"} else "edit" for name in CLIS}


def run_of(agent: str, state: Path, *, serial: int = 1) -> Run:
    record = replace(RECORD, serial=serial, agent=agent)
    run, lock = Runs(state / "runs").create("wo-1", 5, record, b"Work.")
    os.close(lock)
    return run


def logs(state: Path, *arguments: str) -> bytes:
    return septet(state, "logs", "wo-1", *arguments)


def septet(state: Path, *words: str) -> bytes:
    env = {"PATH": os.environ["PATH"], "HOME": str(state), "SEPTET_STATE_DIR": str(state)}
    argv = [str(SEPTET), *words]
    return subprocess.run(argv, env=env, capture_output=True, check=True, timeout=60).stdout


def entries(state: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(logs(state, "--json"))["log_entries"]
    return found


def test_runs_of_all_clis_read_the_same_while_they_go_on_and_after(tmp_path: Path) -> None:
    """A half-written line is left out; a whole run has calls, results and a final text; --raw prints its bytes."""
    printed = [(RECORDINGS / agent / f"{case}.stdout").read_bytes() for agent, case in EDITED.items()]
    runs = [run_of(agent, tmp_path, serial=number) for number, agent in enumerate(EDITED, 1)]
    for run, stream in zip(runs, printed, strict=True):
        run.stdout.write_bytes(stream[:-30])
    before = entries(tmp_path)
    for run, stream in zip(runs, printed, strict=True):
        run.stdout.write_bytes(stream)
        run.put("exit.json", b'{"cause": "exited", "exit_code": 0}')
    after = entries(tmp_path)
    for agent in EDITED:
        first = [entry for entry in before if entry["agent"] == agent]
        whole = [entry for entry in after if entry["agent"] == agent]
        assert {"tool_call", "tool_result"} <= {entry["kind"] for entry in first}
        assert [{**entry, "time": ""} for entry in whole[: len(first)]] == [
            {**entry, "time": ""} for entry in first
        ]
        assert whole[-1]["kind"] == "result"
    assert logs(tmp_path, "--raw") == b"".join(printed)
    told = logs(tmp_path).decode()
    assert f"implement_plan · {after[-1]['agent']}  (5-implement_plan-5)" in told
    assert f"  {after[-1]['text']}" in told


def test_end_without_a_result_is_told_with_the_last_words_of_stderr(tmp_path: Path) -> None:
    """The end of stderr is shown with masked keys, an unfinished last line is read, and a kill has its time."""
    first, second = run_of("codex", tmp_path), run_of("claude", tmp_path, serial=2)
    first.stdout.write_bytes(b"")
    first.stderr.write_text("error: unexpected argument, key sk-ant-made-up-key-0123456789\n", encoding="utf-8")
    first.put("exit.json", b'{"cause": "exited", "exit_code": 2}')
    second.stdout.write_bytes(b'{"type":"result","result":"/bug"}')
    ended_at = "2026-01-01T00:00:09.000Z"
    end = {"cause": "ended", "why": "cancelled", "signal": 15, "ended_at": ended_at}
    second.put("exit.json", json.dumps(end).encode())
    found = entries(tmp_path)
    assert [entry["time"] == ended_at for entry in found] == [False, False, True]
    told = [(entry["run"], entry["kind"], entry["text"]) for entry in found]
    refused = "The agent's process ended: exited, exit code 2. error: unexpected argument, key ***"
    assert told == [
        ("5-implement_plan-1", "error", refused),
        ("5-implement_plan-2", "result", "/bug"),
        ("5-implement_plan-2", "error", "The agent's process ended: cancelled, signal 15."),
    ]


def test_an_agents_words_move_no_cursor(tmp_path: Path) -> None:
    """Escape sequences in an agent's text do not reach the terminal, except with --raw."""
    run = run_of("claude", tmp_path)
    run.stdout.write_bytes(b'{"type":"result","result":"a \\u001b]0;evil\\u0007 bug"}\n')
    run.put("exit.json", b'{"cause": "exited", "exit_code": 0}')
    told = logs(tmp_path)
    assert b"evil" in told
    assert not {b"\x1b", b"\x07"} & {bytes([byte]) for byte in told}
    assert logs(tmp_path, "--raw") == run.stdout.read_bytes()


def test_what_was_asked_of_the_network_is_shown_without_a_server(tmp_path: Path) -> None:
    """Connections of set-up, runs and checks are shown with masked keys; a cut line is left out."""
    run = run_of("codex", tmp_path)
    asked = {"time": "2026-01-01T00:00:01Z", "host": "api.openai.com", "port": 443, "allowed": True, "why": ""}
    refused = {**asked, "host": "evil.example", "allowed": False, "why": "not in the list of hosts"}
    key = {**refused, "host": "sk-ant-made-up-key-0123456789", "port": 0}
    over = asked | {"id": "1-1", "sent_bytes": 1234, "received_bytes": 5, "seconds": 0.25}
    counted = refused | {"id": "1 many.example", "host": "many.example"}
    asked_model = refused | {"host": "api.openai.com", "request": "POST /v1/files"}
    many = [counted | {"count": count} for count in (8, 900)]
    lines = (asked | {"id": "1-1"}, refused, key, over, *many, asked_model)
    run.put("network.jsonl", b"".join(json.dumps(line).encode() + b"\n" for line in lines) + b'{"host": "cut')
    check = run.folder / "checks" / "1"
    check.mkdir(parents=True)
    (check / "network.jsonl").write_text(json.dumps(refused | {"host": "index.example"}), encoding="utf-8")
    setup = run.folder.parent / "setup" / "1"
    setup.mkdir(parents=True)
    (setup / "network.jsonl").write_text(json.dumps(refused | {"host": "npm.example"}), encoding="utf-8")
    answer = json.loads(septet(tmp_path, "logs", "wo-1", "--network", "--json"))
    hosts = "npm.example api.openai.com evil.example *** many.example api.openai.com index.example"
    assert [each["host"] for each in answer["requests"]] == hosts.split()
    assert (answer["total"], answer["is_cut"]) == (7, True)
    assert [each["run"] for each in answer["requests"][:2]] == ["setup", "5-implement_plan-1"]
    assert refused_in_setup(StateDir(tmp_path), "wo-1") == ("npm.example:443",)
    told = logs(tmp_path, "--network").decode()
    assert "5-implement_plan-1\n" in told
    assert "allowed  api.openai.com:443  1,234 bytes sent, 5 received, 0.2 s\n" in told
    assert "refused  many.example:443  900 times, not in the list of hosts\n" in told
    assert "refused  api.openai.com:443  POST /v1/files  not in the list of hosts\n" in told
    assert "refused  evil.example:443  not in the list of hosts\n" in told
    assert "refused  index.example:443  not in the list of hosts (a check)\n" in told


def test_entries_have_their_noted_times_and_others_that_of_the_streams_last_change(tmp_path: Path) -> None:
    """A half-written note is skipped, and a disk without room for notes raises no error."""
    run, printed = run_of("claude", tmp_path), (RECORDINGS / "claude" / "edit_bypass.stdout").read_bytes()
    run.stdout.write_bytes(printed)
    run.put("exit.json", b'{"cause": "exited", "exit_code": 0}')
    os.utime(run.stdout, (0, NOON + 60))
    note_written(run, len(printed) // 2, NOON)
    with (run.folder / "stdout.times").open("a", encoding="ascii") as notes:
        notes.write("cut")
    times = [entry.time for entry in AgentLogs(StateDir(tmp_path), "wo-1").entries()]
    assert list(dict.fromkeys(times)) == ["2025-01-01T12:00:00.000Z", "2025-01-01T12:01:00.000Z"]
    note_written(Run(tmp_path / "gone", None), 10, NOON)
