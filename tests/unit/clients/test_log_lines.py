import json
from datetime import datetime
from pathlib import Path

import pytest

from clients.cli.render.logs import LogText, call_lines
from septet.contracts.host_files import LogEntry
from septet.state import StateDir


@pytest.mark.parametrize(
    ("tool", "arguments", "lines"),
    [
        ("Bash", {"command": "make test"}, ["$ make test"]),
        ("shell", {"command": ["make", "test"]}, ["$ make test"]),
        ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, ["Edit a.py", "  - x", "  + y"]),
        ("Write", {"file_path": "a.py", "content": "1\n2\n"}, ["Write a.py (2 lines)"]),
        ("Grep", {"pattern": "x", "glob": "*.py"}, ["Grep pattern=x, glob=*.py"]),
        ("Edit", "shop.py", ["Edit shop.py"]),
    ],
)
def test_a_tool_call_is_written_as_a_person_would(tool: str, arguments: object, lines: list[str]) -> None:
    """A command follows a dollar sign, an edit is a diff, and any other call is its tool with the arguments."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    assert list(call_lines(tool, text)) == lines


def entry(kind: str, text: str, tool: str = "", run: str = "2-build_plan-1") -> LogEntry:
    """Return one log entry of an agent."""
    fields = {"id": f"{run}/1", "run": run, "step": "build_plan", "agent": "claude", "kind": kind}
    return LogEntry.model_validate({**fields, "text": text, "tool": tool})


def test_an_answer_for_programs_is_left_out(tmp_path: Path) -> None:
    """Structured output is shown on request only, and text is always shown."""
    answer, words = entry("result", '{"plan_path": "specs/a.md"}'), entry("text", "Done.")
    log = LogText(StateDir(tmp_path), "wo-1")
    assert list(log.lines(words)) == ["build_plan · claude  (2-build_plan-1)", "          Done."]
    assert list(log.lines(answer)) == []
    assert list(LogText(StateDir(tmp_path), "wo-1", structured=True).lines(answer))[1:] == [
        f"          {answer.text}"
    ]


def test_an_agent_that_says_nothing_else_is_shown_with_its_answer(tmp_path: Path) -> None:
    """A run without any text shows its structured answer in words, once."""
    log = LogText(StateDir(tmp_path), "wo-1")
    text = '{"plan_path": "specs/a.md", "sure": true}'
    said = [
        entry("tool_call", text, tool="StructuredOutput"),
        entry("tool_result", '{"ok": true}', tool="StructuredOutput"),
        entry("result", text),
    ]
    lines = [line for each in said for line in log.lines(each)]
    assert lines[1:] == ["          plan_path: specs/a.md", "          sure: true"]


def test_each_run_has_a_heading(tmp_path: Path) -> None:
    """Each run begins with a heading, and control characters are removed."""
    log = LogText(StateDir(tmp_path), "wo-1")
    first = list(log.lines(entry("text", "One\x1b[2J")))
    second = list(log.lines(entry("text", "Two", run="3-find_plan_file-1")))
    assert [first[0], second[0]] == [
        "build_plan · claude  (2-build_plan-1)",
        "\nbuild_plan · claude  (3-find_plan_file-1)",
    ]
    assert "\x1b" not in first[1]


def test_each_entry_has_its_time(tmp_path: Path) -> None:
    """An entry's first line begins with its local time, and its other lines are indented."""
    log = LogText(StateDir(tmp_path), "wo-1")
    said = entry("text", "One.\nTwo.").model_copy(update={"time": "2025-01-01T10:20:30.400Z"})
    local = f"{datetime.fromisoformat(said.time).astimezone():%H:%M:%S}"
    assert list(log.lines(said))[1:] == [f"{local}  One.", "          Two."]
