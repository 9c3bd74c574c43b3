"""Play one run of the scripted agent: for a step, the finalizer, a pipeline or a pull request."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from septet.agents.scripted.events import TooManyTurnsError
from septet.agents.scripted.hands import Hands, read
from septet.agents.scripted.jobs import JOBS, implement, obey, plan, predicted_files
from septet.agents.scripted.task import PromptTask, step_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from septet.agents.scripted.events import Stream
    from septet.agents.scripted.jobs import Answer, Job
    from septet.agents.scripted.scenario import Scenario, Script
    from septet.agents.scripted.sessions import Memory

_TERMINATED = 143
"""The exit code after SIGTERM, 128 + 15, which is the same as claude's."""


_MARKS, _BETWEEN = ("<<<<<<< ", ">>>>>>> "), "======="


def plan_solution(task: PromptTask, hands: Hands) -> Answer:
    """Write the plan, and answer with a solution that has one task for each file to change."""
    planned = plan(task, hands)
    files = predicted_files(task, planned["plan_path"])
    return {
        "id": task.solution,
        "plan_path": planned["plan_path"],
        "summary": planned["summary"],
        "tasks": [_task(number, file) for number, file in enumerate(files, start=1)],
        "predicted_files": files,
    }


def carry_out_solution(task: PromptTask, hands: Hands) -> Answer:
    """Carry out the plan, and answer with the status of each task of the solution."""
    done = implement(task, hands)
    status = "completed" if done["success"] else "failed"
    tasks = task.given.get("tasks", [])
    return {
        "status": status,
        "summary": done["summary"],
        "tasks": [{"id": each["id"], "status": status, "note": each["title"]} for each in tasks],
        "commit_hash": None,
        "files_modified": list(hands.touched),
    }


JOBS_IN_PIPELINE: dict[str, Job] = {"build_plan": plan_solution, "implement_plan": carry_out_solution}


def rework(task: PromptTask, hands: Hands) -> Answer:
    """Make the changes that checks and reviews name, keep both sides of a conflict, and reply to each thread."""
    checks, reviews = task.feedback.get("checks", []), task.feedback.get("reviews", [])
    done = [line for check in checks for line in obey(task, hands, str(check.get("log", "")))]
    done += [line for review in reviews for line in obey(task, hands, str(review.get("body", "")))]
    replies = []
    for thread in task.feedback.get("threads", []):
        said = [line for each in thread["comments"] for line in obey(task, hands, str(each.get("body", "")))]
        done += said
        replies.append({"thread": thread["thread"], "reply": " ".join(said) or "There is nothing to change."})
    for path in (task.feedback.get("conflict") or {}).get("paths", []):
        content = read(task.folder / path)
        if content is not None:
            lines = (line for line in content.split("\n") if not line.startswith(_MARKS) and line != _BETWEEN)
            hands.write(path, "\n".join(lines))
            done.append(f"`{path}` holds what both sides have.")
    return {
        "success": True,
        "summary": " ".join(done) or "There is nothing to change.",
        "commit_message": "fix: answer what is said on the pull request",
        "replies": replies,
    }


def _task(number: int, file: str) -> Answer:
    return {
        "id": f"T{number}",
        "title": f"Change {file}",
        "scope": file,
        "modification_points": [{"file": file, "change": "What the plan's steps say of this file."}],
        "implementation": [f"Do the plan's steps for {file}."],
        "test_commands": ["git diff --check"],
        "acceptance": [f"{file} holds what the plan's steps say."],
        "depends_on": [f"T{number - 1}"] if number > 1 else [],
        "estimated_minutes": 5,
    }


class ScriptedRun:
    """One run of the scripted agent, from the prompt to the result."""

    def __init__(self, stream: Stream, scenario: Scenario, memory: Memory, prompt: str) -> None:
        """Save the task in the session, and choose the script for this start of the step."""
        self.stream = stream
        self.folder = Path.cwd()
        self._arguments = stream.arguments
        self._session = stream.session
        self.prompt = prompt
        self._finalizing = self._arguments.resume is not None and self._arguments.without_tools
        self._remember_task()
        self.script = self._choose_script(scenario, memory)
        self.hands = Hands(self.stream, self.folder, self.script.crash_after_edits, leave_notes=scenario.is_given)

    def play(self, message: dict[str, Any] | None = None) -> int:
        """Carry out the run and return the exit code; `message`, if stdin had one, is printed on the stream."""
        self.obey_signals()
        try:
            self.stream.init(str(self.folder), self.prompt)
            if message is not None:
                self.stream.repeat(message)
            if not self._finalizing:
                self._work()
            self._answer()
        except TooManyTurnsError:
            reason = f"Reached maximum number of turns ({self._arguments.max_turns})"
            self.stream.print_failure("error_max_turns", reason, terminal_reason="max_turns")
            return 1
        return 0

    def obey_signals(self) -> None:
        """On SIGTERM, end this process with claude's exit code."""

        def end(_signal: int, _frame: object) -> None:
            os._exit(_TERMINATED)

        signal.signal(signal.SIGTERM, end)

    def begin_work(self) -> None:
        """Wait for half of the script's delay, before the edits."""
        self.keep_busy(self.script.delay_seconds / 2)

    def end_work(self) -> None:
        """Wait for half of the script's delay, after the edits."""
        self.keep_busy(self.script.delay_seconds / 2)

    def keep_busy(self, seconds: float) -> None:
        """Print status events for this many seconds."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.stream.tick()
            time.sleep(min(left, 0.25))

    def change_answer(self, answer: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the answer with the changes that the script demands."""
        script = self.script
        if script.refuse is not None and (answer or {}).keys() & {"success", "status"}:
            return _refusal(answer or {}, script.refuse)
        return answer if answer is None else {**answer, **script.put_over}

    def _remember_task(self) -> None:
        """Save the task in the session before the first event: the prompt of a resumed session lacks the task."""
        begun = self._session.prompt != ""
        step = "" if self._finalizing else step_of(self.prompt, None if begun else self._arguments.schema)
        if step or not begun:
            self._session.step = step
            self._session.prompt = self.prompt
            self._session.answer = None
        self._session.save()

    def _choose_script(self, scenario: Scenario, memory: Memory) -> Script:
        step, folder = self._session.step, str(self.folder)
        if not self._finalizing:
            return scenario.script(step, memory.count(folder, step))
        start = memory.count_events(folder, step)
        return scenario.script(step, start).finalizer(memory.count(folder, f"{step}-{start}-finalizer"))

    def _work(self) -> None:
        self.stream.say(f"I begin: {self._session.step or 'a task of its own kind'}.")
        self.begin_work()
        self._session.answer = self._edit()
        self._session.save()
        self.end_work()
        self.hands.crash_before_answering()

    def _edit(self) -> dict[str, Any] | None:
        """Do the step's work, or make the script's edits in place of the work; return the answer."""
        self.hands.tied = self.script.edits is not None
        answer = self._own_answer()
        self.hands.tied = False
        for path, content in (self.script.edits or {}).items():
            if content is None:
                self.hands.delete(path)
            else:
                self.hands.write(path, content)
        if answer is not None and "files_modified" in answer:
            answer["files_modified"] = list(self.hands.touched)
        return self.change_answer(answer)

    def _own_answer(self) -> dict[str, Any] | None:
        task, step = PromptTask(self._session.prompt, self.folder), self._session.step
        jobs = {**JOBS, "rework": rework, **(JOBS_IN_PIPELINE if task.solution else {})}
        return jobs[step](task, self.hands) if step in jobs else None

    def _answer(self) -> None:
        schema, answer = self._arguments.schema, self._session.answer
        if answer is None:
            self.hands.tied = True
            answer = self._own_answer()
        text = "Done." if answer is None else json.dumps(answer, ensure_ascii=False)
        spoiled = self.script.text_for(answer or {})
        if schema and spoiled is None:
            call = self.stream.call("StructuredOutput", **(answer or {}))
            self.stream.print_result(call, "Structured output provided successfully", "")
            self.stream.answer(text, answer)
            return
        self.stream.say(text if spoiled is None else spoiled)
        if schema:
            self.stream.nudge()
            self.stream.say(spoiled or "")
        self.stream.answer(text if spoiled is None else spoiled, None)


def _refusal(answer: dict[str, Any], why: str) -> dict[str, Any]:
    """Return `answer` changed into the report of a failed step, with the summary `why`."""
    if "success" in answer:
        return {"success": False, "summary": why, "key_changes_made": [], "key_learnings": []}
    tasks = [{**task, "status": "failed"} for task in answer["tasks"]]
    return {**answer, "status": "failed", "summary": why, "tasks": tasks}
