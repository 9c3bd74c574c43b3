"""One run: a start of a step, or a turn that asks a session for its JSON alone."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from septet.agents.scripted.events import BudgetReachedError, TooManyTurnsError
from septet.agents.scripted.hands import Hands
from septet.agents.scripted.jobs import JOBS
from septet.agents.scripted.jobs_in_pipeline import JOBS_IN_PIPELINE
from septet.agents.scripted.malformed import KINDS
from septet.agents.scripted.task import PromptTask, instance, step_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from septet.agents.scripted.arguments import Arguments
    from septet.agents.scripted.events import Stream
    from septet.agents.scripted.scenario import Scenario, Script
    from septet.agents.scripted.sessions import Memory, ScriptedSession

_TICK_SECONDS = 0.25
_LOOK_SECONDS = 0.05
_FOR_EVER_SECONDS = 10.0**8
_TERMINATED = 143
"""128 + SIGTERM, as claude ends."""


class ScriptedRun:
    """What an agent does between its prompt and its result."""

    def __init__(  # noqa: PLR0913, PLR0917 -- what a run consists of, once
        self,
        arguments: Arguments,
        scenario: Scenario,
        memory: Memory,
        session: ScriptedSession,
        prompt: str,
        stream: Stream,
    ) -> None:
        """Keep the task on disk and see what the scenario has for it."""
        self._arguments = arguments
        self._folder = Path.cwd()
        self._session = session
        self._prompt = prompt
        self._finalizing = arguments.resume is not None and arguments.without_tools
        self._remember_task()
        self._script = self._choose_script(scenario, memory)
        self._stream = stream
        self._hands = Hands(self._stream, self._folder, self._script, scenario)

    def play(self, message: dict[str, Any] | None = None) -> int:
        """Play the run to its end and return the exit code; `message` is one of stdin that is to be repeated."""
        self._obey_signals()
        try:
            self._stream.init(str(self._folder), self._prompt)
            if message is not None:
                self._stream.repeat(message)
            if self._script.api_error is not None:
                self._stream.api_error(self._script.api_error)
                return 1
            if not self._finalizing:
                self._work()
            self._answer()
        except TooManyTurnsError:
            reason = f"Reached maximum number of turns ({self._arguments.max_turns})"
            self._stream.print_failure("error_max_turns", reason, terminal_reason="max_turns")
            return 1
        except BudgetReachedError:
            reason = f"Reached maximum budget (${self._arguments.max_budget_usd})"
            self._stream.print_failure("error_max_budget_usd", reason, terminal_reason="budget_exhausted")
            return 1
        except KeyboardInterrupt:
            reason = "Interrupted by the user."
            self._stream.print_failure("error_during_execution", reason, terminal_reason="aborted_tools")
        return 0

    def _remember_task(self) -> None:
        """Write the task to disk before the first event: the resume of a killed session does not repeat it."""
        begun = self._session.prompt != ""
        step = "" if self._finalizing else step_of(self._prompt, None if begun else self._arguments.schema)
        if step or not begun:
            self._session.step = step
            self._session.prompt = self._prompt
            self._session.answer = None
        self._session.save()

    def _choose_script(self, scenario: Scenario, memory: Memory) -> Script:
        step, folder = self._session.step, str(self._folder)
        if not self._finalizing:
            return scenario.script(step, memory.count(folder, step))
        start = memory.count_events(folder, step)
        return scenario.script(step, start).finalizer(memory.count(folder, f"{step}-{start}-finalizer"))

    def _obey_signals(self) -> None:
        import signal

        def end(_signal: int, _frame: object) -> None:
            os._exit(_TERMINATED)

        signal.signal(signal.SIGTERM, signal.SIG_IGN if self._script.ignore_sigterm else end)

    def _work(self) -> None:
        script = self._script
        self._stream.say(f"I begin: {self._session.step or 'a task of its own kind'}.")
        for _ in range(script.extra_turns):
            self._stream.say("I am still looking.")
        if script.background_seconds:
            self._leave_a_process(script.background_seconds)
        if script.big_output_bytes:
            call = self._stream.call("Bash", command="make log", description="Print much")
            self._stream.print_result(call, "x" * script.big_output_bytes, {"stdout": "…", "stderr": ""})
        self._keep_busy(script.delay_seconds / 2)
        self._session.answer = self._edit()
        self._session.save()
        self._keep_busy(script.delay_seconds / 2)
        self._wait_for(script.wait_for)
        time.sleep(_FOR_EVER_SECONDS if script.hang else script.idle_seconds)
        self._hands.crash_before_answering()

    def _edit(self) -> dict[str, Any] | None:
        """Do the step's job, or the edits of the script in its place, and return the answer."""
        script = self._script
        self._hands.tied = script.edits is not None
        answer = self._own_answer()
        self._hands.tied = False
        for path, content in (script.edits or {}).items():
            if content is None:
                self._hands.delete(path)
            else:
                self._hands.write(path, content)
        if answer is not None and "files_modified" in answer:
            answer["files_modified"] = list(self._hands.touched)
        if script.refuse is not None and (answer or {}).keys() & {"success", "status"}:
            return _refusal(answer or {}, script.refuse)
        return script.answer if isinstance(script.answer, dict) else _with(answer, script.put_over)

    def _own_answer(self) -> dict[str, Any] | None:
        task = PromptTask(self._session.prompt, self._folder)
        job = (JOBS_IN_PIPELINE if task.solution else JOBS).get(self._session.step) or JOBS.get(self._session.step)
        return job(task, self._hands) if job else None

    def _answer(self) -> None:
        schema, answer = self._arguments.schema, self._session.answer
        if answer is None:
            self._hands.tied = True
            answer = self._own_answer()
        if schema and not set(schema.get("required", ())) <= (answer or {}).keys():
            answer = instance(schema)
        text = "Done." if answer is None else json.dumps(answer, ensure_ascii=False)
        spoiled = self._scripted_text(answer or {})
        if schema and spoiled is None:
            call = self._stream.call("StructuredOutput", **(answer or {}))
            self._stream.print_result(call, "Structured output provided successfully", "")
            self._stream.answer(text, answer)
            return
        self._stream.say(text if spoiled is None else spoiled)
        if schema:
            self._stream.nudge()
            self._stream.say(spoiled or "")
        self._stream.answer(text if spoiled is None else spoiled, None)

    def _scripted_text(self, answer: dict[str, Any]) -> str | None:
        """Return the text that the script puts in the place of the answer's JSON, if it does."""
        script = self._script
        if script.malformed is not None:
            return KINDS[script.malformed](answer)
        if isinstance(script.answer, str):
            return script.answer
        own_words = answer.keys() & {"success", "status"}
        return script.refuse if script.refuse is not None and not own_words else None

    def _keep_busy(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._stream.tick()
            time.sleep(min(left, _TICK_SECONDS))

    def _wait_for(self, path: str) -> None:
        """Be busy until there is such a file."""
        while path and not Path(path).exists():
            self._keep_busy(_LOOK_SECONDS)

    def _leave_a_process(self, seconds: float) -> None:
        """Start a process in a session of its own that outlives this run and then writes into the folder."""
        call = self._stream.call("Bash", command="nohup make serve &", description="Start a server")
        if os.fork() == 0:
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(nothing, descriptor)
            time.sleep(seconds)
            (self._folder / "late.txt").write_text(
                "A process that was left behind wrote this.\n", encoding="ascii"
            )
            os._exit(0)
        self._stream.print_result(call, "(Bash completed with no output)", {"stdout": "", "stderr": ""})


def _refusal(answer: dict[str, Any], why: str) -> dict[str, Any]:
    """Return the answer of a step that failed, in the requested form."""
    if "success" in answer:
        return {"success": False, "summary": why, "key_changes_made": [], "key_learnings": []}
    tasks = [{**task, "status": "failed"} for task in answer["tasks"]]
    return {**answer, "status": "failed", "summary": why, "tasks": tasks}


def _with(answer: dict[str, Any] | None, put_over: dict[str, Any]) -> dict[str, Any] | None:
    return answer if answer is None else {**answer, **put_over}
