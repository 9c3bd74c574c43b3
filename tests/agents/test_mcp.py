"""A real CLI uses `septet mcp`: its model's calls take effect, and the model reads the answers."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes.model_stub import Asked, Model, serving
from fakes.model_wires import Call, Said
from fakes.repositories import make_origin
from fakes.septet_command import PROGRAMS, Septet

pytestmark = pytest.mark.timeout(600)

TOOLS = ("create_task", "task_detail", "move")
_PREFIX = "mcp__septet__"
_WITHIN_SECONDS = 240.0


@dataclass
class Caller(Model):
    """A model that calls tools in order, and then ends."""

    calls: tuple[Call, ...] = ()

    def says(self, asked: Asked) -> Said:
        """Return the next call; a request without tools gets a word."""
        if asked.tools and asked.results < len(self.calls):
            return Said(call=self.calls[asked.results])
        return Said("It is done.")


def _answer(content: str | list[dict[str, Any]]) -> dict[str, Any]:
    """Return the object at the beginning of a result; the CLI may add words to an error."""
    text = content if isinstance(content, str) else content[0]["text"]
    answer: dict[str, Any] = json.JSONDecoder().raw_decode(text)[0]
    return answer


def test_agent_creates_a_task_reads_it_and_moves_it(programs: dict[str, str], tmp_path: Path) -> None:
    """The CLI finds the tools, and its model reads the same objects that the commands print."""
    origin = make_origin(tmp_path, "app.git")
    origin.push({"README.md": "# app\n"})
    order = {"id": "wo-agent"}
    calls = (
        Call(f"{_PREFIX}create_task", {"repository": str(origin.bare), "title": "Say goodbye too", **order}),
        Call(f"{_PREFIX}task_detail", order),
        Call(f"{_PREFIX}move", {**order, "to": "triaged"}),
        Call(f"{_PREFIX}move", {**order, "to": "done"}),
    )
    septet, config = Septet(tmp_path / "machine"), tmp_path / "mcp.json"
    server = {"command": str(PROGRAMS / "septet"), "args": ["mcp"], "env": septet.env}
    config.write_text(json.dumps({"mcpServers": {"septet": server}}), encoding="utf-8")
    allowed = ",".join(_PREFIX + tool for tool in TOOLS)
    options = ("--mcp-config", str(config), "--strict-mcp-config", "--allowedTools", allowed)
    with septet.up(), serving(Caller({}, calls=calls)) as address:
        ended = subprocess.run(
            [programs["SEPTET_CLAUDE_PATH"], "-p", "--verbose", "--output-format", "stream-json", *options],
            input="Put the issue on the board.",
            env={**septet.env, "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "made-up"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=_WITHIN_SECONDS,
            check=False,
        )
        history = septet("show", "wo-agent", "--json").json["history"]
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    told = [block for event in events if event["type"] == "user" for block in event["message"]["content"]]
    answers = [_answer(block["content"]) for block in told if block["type"] == "tool_result"]
    created, read, moved, refused = answers
    assert (created["task"]["status"], created["task"]["stage"]) == ("pending", "collected")
    assert read["task"] == created["task"]
    assert moved["task"]["stage"] == "triaged"
    assert refused["error"]["type"] == "RefusedTransition"
    assert [(move["to"], move["who"]) for move in history[1:2]] == [("triaged", "claude-code")]
