"""A real CLI uses `septet mcp`: its model's calls take effect, and the model reads the answers."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes.model_stub import Asked, Model, serving
from fakes.model_wires import Call, Said
from fakes.repositories import Origin, make_origin
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


@pytest.fixture
def septet(tmp_path: Path) -> Iterator[Septet]:
    """Yield a machine on which `septet up` runs."""
    septet = Septet(tmp_path / "machine")
    with septet.up():
        yield septet


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """Return a repository with a file."""
    repository = make_origin(tmp_path, "app.git")
    repository.push({"README.md": "# app\n"})
    return repository


def answers_of(claude: str, septet: Septet, model: Model) -> list[dict[str, Any]]:
    """Run the CLI until its model ends, and return the tools' answers as the model reads them."""
    work = septet.root / "work"
    work.mkdir()
    server = {"command": str(PROGRAMS / "septet"), "args": ["mcp"], "env": septet.env}
    config = work / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"septet": server}}), encoding="utf-8")
    allowed = ",".join(_PREFIX + tool for tool in TOOLS)
    options = ("--mcp-config", str(config), "--strict-mcp-config", "--allowedTools", allowed)
    with serving(model) as address:
        ended = subprocess.run(
            [claude, "-p", "--verbose", "--output-format", "stream-json", *options],
            input="Put the issue on the board.",
            env={**septet.env, "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "made-up"},
            cwd=work,
            capture_output=True,
            text=True,
            timeout=_WITHIN_SECONDS,
            check=False,
        )
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    told = [block for event in events if event["type"] == "user" for block in event["message"]["content"]]
    return [_answer(block["content"]) for block in told if block["type"] == "tool_result"]


def _answer(content: str | list[dict[str, Any]]) -> dict[str, Any]:
    """Return the object at the beginning of a result; the CLI may add words to an error."""
    text = content if isinstance(content, str) else content[0]["text"]
    answer: dict[str, Any] = json.JSONDecoder().raw_decode(text)[0]
    return answer


def test_agent_creates_a_task_reads_it_and_moves_it(
    programs: dict[str, str], septet: Septet, origin: Origin
) -> None:
    """The CLI finds the tools, and its model reads the same objects that the commands print."""
    order = {"id": "wo-agent"}
    calls = (
        Call(f"{_PREFIX}create_task", {"repository": str(origin.bare), "title": "Say goodbye too", **order}),
        Call(f"{_PREFIX}task_detail", order),
        Call(f"{_PREFIX}task_detail", {"id": "wo-nobody"}),
        Call(f"{_PREFIX}move", {**order, "to": "triaged"}),
        Call(f"{_PREFIX}move", {**order, "to": "done"}),
    )
    created, read, unknown, moved, refused = answers_of(
        programs["SEPTET_CLAUDE_PATH"], septet, Caller({}, calls=calls)
    )
    assert (created["task"]["status"], created["task"]["stage"]) == ("pending", "collected")
    assert read["task"] == created["task"]
    assert [move["to"] for move in read["history"]] == ["collected"]
    assert unknown["error"]["type"] == "NotFound"
    assert moved["task"]["stage"] == "triaged"
    assert refused["error"]["type"] == "RefusedTransition"
    history = septet("show", "wo-agent", "--json").json["history"]
    assert [(move["to"], move["who"]) for move in history[1:2]] == [("triaged", "claude-code")]
