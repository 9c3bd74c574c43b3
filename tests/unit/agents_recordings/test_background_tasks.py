"""claude's results while tasks run in the background: which result counts, and what the engine waits for."""

from typing import Any, Final

import pytest
from fakes.agent_streams import BAD, lines

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.endings import AFTER_RESULT
from septet.agents.outcomes.outcome import ExitRecord, Outcome, StreamProgress

EXITED: Final = ExitRecord("exited", exit_code=0)
ENDED: Final = ExitRecord("ended", why=AFTER_RESULT, signal=15)
Events = list[dict[str, Any]]


def started(kind: str, **more: Any) -> dict[str, Any]:
    """Return the start of a task: `b` for a command, `a` for a sub-agent."""
    kinds = {"b": "local_bash", "a": "local_agent"}
    about = {"task_id": kind, "task_type": kinds.get(kind, kind), "description": f"the {kind} task"}
    return {"type": "system", "subtype": "task_started", "is_backgrounded": True, **about, **more}


def over(task: str, status: str = "completed") -> Events:
    """Return the events of claude 2.1.329 about a finished task."""
    patch = {"type": "system", "subtype": "task_updated", "task_id": task, "patch": {"status": status}}
    told = {"killed": "stopped"}.get(status, status)
    return [patch, {"type": "system", "subtype": "task_notification", "task_id": task, "status": told}]


def listed(*tasks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "system", "subtype": "background_tasks_changed", "tasks": list(tasks)}


def result(text: str, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "output_tokens": 2}
    about = {"subtype": "success", "is_error": False, "num_turns": 1, "usage": usage, "session_id": "s"}
    return {"type": "result", "result": text, **about, **more}


INIT: Final[dict[str, Any]] = {"type": "system", "subtype": "init", "session_id": "s", "model": "m"}
EMPTY_ERROR: Final = result("", is_error=True, subtype="error_during_execution", num_turns=0, usage={})


def read(events: Events, end: ExitRecord = EXITED) -> tuple[StreamProgress, Outcome]:
    stream = adapter_for("claude").dialect()
    stream.feed(lines([INIT, *events]))
    return stream.progress, stream.outcome(end, "")


@pytest.mark.parametrize(
    ("events", "waits_for"),
    [
        ([started("b"), result("x")], "commands"),
        ([started("a"), result("x")], "tasks"),
        ([started("b"), started("a"), result("x"), *over("a")], "commands"),
        ([started("a", is_backgrounded=False), result("x")], ""),
        ([started("a", ambient=True), result("x")], ""),
        ([started("a", is_backgrounded=None), result("x")], "tasks"),
        ([started("b"), result("x"), *over("b", "killed")], ""),
        ([started("b"), started("a"), result("x"), listed(started("b"))], "commands"),
        ([listed(started("a")), result("x"), listed()], "tasks"),
        ([started("a"), result("x", is_error=True)], ""),
        ([started("a", is_backgrounded=False), result("x"), listed("x", 4), result("y")], ""),  # type: ignore[arg-type]
    ],
)
def test_what_is_waited_for_after_a_result_follows_from_the_tasks_that_are_open(
    events: Events, waits_for: str
) -> None:
    """A result is the end if no background task is open and the CLI has no finished task to report."""
    progress, _ = read(events)
    assert progress.waits_for == waits_for
    assert progress.result_text == ("x" if waits_for == "commands" else "")


@pytest.mark.parametrize(
    ("events", "end", "text"),
    [
        ([started("a"), result("x"), *over("a"), result("y")], EXITED, "y"),
        ([started("a"), result("x"), *over("a", "killed"), listed()], ENDED, None),
        ([started("a"), result("x"), listed(), *over("a", "killed")], EXITED, None),
        ([started("b"), result("x"), *over("b", "killed")], EXITED, None),
        ([started("b"), result("x"), *over("b", "killed"), listed()], ENDED, "x"),
        ([started("a"), result("x"), *over("a")], EXITED, "x"),
        ([result("x"), EMPTY_ERROR], BAD, "x"),
        ([result("x"), result("", is_error=True)], BAD, None),
        ([result("x"), {**EMPTY_ERROR, "num_turns": 1}], BAD, None),
        ([EMPTY_ERROR], BAD, None),
    ],
)
def test_the_last_whole_result_counts_unless_work_is_missing(
    events: Events, end: ExitRecord, text: str | None
) -> None:
    """An unfinished sub-agent makes the result invalid; a stopped command or an empty error does not."""
    _, outcome = read(events, end)
    assert outcome.text == text
    assert (outcome.ended == "ok") is (text is not None)


def test_missing_work_is_named_and_so_are_commands_that_were_stopped() -> None:
    """Unfinished work is a crash whose message names the task, unless a limit came; a command is a warning."""
    _, missing = read([started("a", description="write\nthe tests"), result("x")], ENDED)
    assert (missing.ended, missing.kind, missing.has_answer) == ("crashed", "unfinished", False)
    assert "write the tests" in missing.message
    assert read([started("a"), result("x")], ExitRecord("idle_limit", signal=15))[1].kind == "idle"
    _, served = read([started("b", description="npm run dev"), result("x")], ENDED)
    assert [warning for warning in served.warnings if "npm run dev" in warning]


def test_the_session_is_that_which_the_result_names() -> None:
    """A single result's session counts; a second result with another session changes nothing."""
    assert read([result("x", session_id="new")])[1].session_id == "new"
    _, outcome = read([result("x"), result("y", session_id="new")])
    assert (outcome.text, outcome.session_id) == ("x", "s")


def test_a_result_of_no_model_is_no_answer() -> None:
    """A result without a model's turn is the CLI's own answer to a slash command, and counts as a crash."""
    nothing = {"num_turns": 0, "usage": {"input_tokens": 0, "output_tokens": 0}}
    _, outcome = read([result("/status isn't available.", **nothing)])
    assert (outcome.ended, outcome.kind, outcome.text) == ("crashed", "local_answer", None)
    assert "/status isn't available." in outcome.message
    assert read([result("x", num_turns=0)])[1].text == "x"
    assert read([result("x", usage={}, num_turns=None)])[1].text == "x"
