"""The scripted agent of tests: the product's, with faults that only tests need (`ScriptOfTests.keys`)."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

from septet.agents.scripted.events import Stream
from septet.agents.scripted.program import Program
from septet.agents.scripted.run import ScriptedRun
from septet.agents.scripted.scenario import NUMBER, Scenario, Script

_LOOK_SECONDS = 0.05
_FOR_EVER_SECONDS = 10.0**8
Answer = dict[str, Any]


class BudgetReachedError(Exception):
    """`--max-budget-usd` is reached."""


class ScriptOfTests(Script):
    keys: ClassVar = {
        **Script.keys,
        "answer": (str, dict),
        "wait_for": (str,),  # a file until which it works, with events all the time
        "idle_seconds": NUMBER,  # of silence
        "hang": (bool,),
        "extra_turns": (int,),  # before it continues, against --max-turns
        "api_error": (int,),  # the status of the model API's answer
        "background_seconds": NUMBER,  # of a process that outlives the run and then writes `late.txt`
    }

    def __init__(self, content: dict[str, Any]) -> None:
        super().__init__(content)
        self.content = content

    def text_for(self, answer: Answer) -> str | None:
        given = self.content.get("answer")
        return given if isinstance(given, str) and self.malformed is None else super().text_for(answer)


class ScenarioOfTests(Scenario):
    keys: ClassVar = {**Scenario.keys, "cost_usd": NUMBER, "tokens": (dict,)}
    script_type = ScriptOfTests

    def __init__(self, name: str, content: dict[str, Any]) -> None:
        super().__init__(name, content)
        self.turn_cost_usd: float = content.get("cost_usd", 0.0)
        self.tokens: dict[str, int] = content.get("tokens", {})


class StreamOfTests(Stream):
    scenario: ScenarioOfTests

    @property
    def cost_usd(self) -> float:
        return self.turns * self.scenario.turn_cost_usd

    def message(self, block: dict[str, Any]) -> None:
        budget = self.arguments.max_budget_usd
        if budget is not None and self.turns and self.cost_usd >= budget:
            raise BudgetReachedError
        super().message(block)

    def use(self, characters: int) -> dict[str, int]:
        return {**super().use(characters), **self.scenario.tokens}

    def api_error(self, status: int) -> None:
        """Print claude's end after a refusal of the model API: `success`, and yet an error."""
        text = f"API Error: {status} the scenario lets the model API refuse"
        no_usage = dict.fromkeys(self.usage, 0)
        self.assistant({"type": "text", "text": text}, "<synthetic>", no_usage, api_error_status=status)
        facts = {"is_error": True, "result": text, "api_error_status": status, "terminal_reason": "api_error"}
        self.result("success", {**facts, "num_turns": 1, "stop_reason": "stop_sequence"})


class RunOfTests(ScriptedRun):
    stream: StreamOfTests
    script: ScriptOfTests

    def play(self, message: dict[str, Any] | None = None) -> int:
        if (status := self.script.content.get("api_error")) is not None:
            self.obey_signals()
            self.stream.init(str(self.folder), self.prompt)
            self.stream.api_error(status)
            return 1
        try:
            return super().play(message)
        except BudgetReachedError:
            reason = f"Reached maximum budget (${self.stream.arguments.max_budget_usd})"
            self.stream.print_failure("error_max_budget_usd", reason, terminal_reason="budget_exhausted")
            return 1

    def begin_work(self) -> None:
        for _ in range(self.script.content.get("extra_turns", 0)):
            self.stream.say("I am still looking.")
        if seconds := self.script.content.get("background_seconds"):
            self._leave_a_process(seconds)
        super().begin_work()

    def end_work(self) -> None:
        super().end_work()
        path = self.script.content.get("wait_for", "")
        while path and not Path(path).exists():
            self.keep_busy(_LOOK_SECONDS)
        hangs = self.script.content.get("hang", False)
        time.sleep(_FOR_EVER_SECONDS if hangs else self.script.content.get("idle_seconds", 0))

    def change_answer(self, answer: Answer | None) -> Answer | None:
        given = self.script.content.get("answer")
        is_given = isinstance(given, dict) and self.script.refuse is None
        return given if is_given else super().change_answer(answer)

    def _leave_a_process(self, seconds: float) -> None:
        """Start a process in its own session that outlives this run and then writes into the folder."""
        call = self.stream.call("Bash", command="nohup make serve &", description="Start a server")
        if os.fork() == 0:
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(nothing, descriptor)
            time.sleep(seconds)
            (self.folder / "late.txt").write_text("A process that was left behind wrote this.\n", encoding="ascii")
            os._exit(0)
        self.stream.print_result(call, "(Bash completed with no output)", {"stdout": "", "stderr": ""})


class ProgramOfTests(Program):
    scenario_type = ScenarioOfTests
    stream_type = StreamOfTests
    run_type = RunOfTests


def write_scripted_program(path: Path) -> Path:
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P "{__file__}" "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    sys.exit(ProgramOfTests(os.environ, sys.stdin.buffer, sys.stdout.buffer, sys.stderr).start(sys.argv[1:]))
