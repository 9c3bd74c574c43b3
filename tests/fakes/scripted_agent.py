"""The scripted agent in tests, inside this process."""

import contextlib
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes.scripted_program import ProgramOfTests

STREAM = ("-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions")


@dataclass(frozen=True)
class Ran:
    code: int
    events: list[dict[str, Any]]
    stderr: str

    @property
    def result(self) -> dict[str, Any]:
        return self.events[-1]

    @property
    def answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.result["result"])
        return answer

    @property
    def session(self) -> str:
        return str(self.events[0]["session_id"])

    def tools(self) -> list[str]:
        said = [event["message"]["content"] for event in self.events if event["type"] == "assistant"]
        return [block["name"] for blocks in said for block in blocks if block["type"] == "tool_use"]


@dataclass
class ScriptedAgent:
    folder: Path
    home: Path

    def run(self, prompt: str, *argv: str, scenario: Any = "") -> Ran:
        """Run the agent in this process with claude's usual arguments and `argv`; a scenario may be a value."""
        out, err = io.BytesIO(), io.StringIO()
        with contextlib.chdir(self.folder):
            program = ProgramOfTests(self.env(scenario), io.BytesIO(prompt.encode()), out, err)
            code = program.start([*STREAM, *argv])
        return Ran(code, [json.loads(line) for line in out.getvalue().splitlines()], err.getvalue())

    def env(self, scenario: Any = "") -> dict[str, str]:
        if not isinstance(scenario, str):
            path = self.home / "scenario.json"
            path.write_text(json.dumps(scenario), encoding="utf-8")
            scenario = str(path)
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "SEPTET_SCRIPTED_HOME": str(self.home / "memory"),
            "SEPTET_SCRIPTED_SCENARIO": scenario,
        }
