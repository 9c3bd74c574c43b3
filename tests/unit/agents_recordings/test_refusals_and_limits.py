"""Refusals of the model, and limits that only stderr names, as the five CLIs print them."""

import json
from typing import Any, Final

import pytest

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import Cause, ExitRecord, Outcome

ENDED: Final = "2026-11-28T12:00:00.000Z"
WORDS: Final = (
    "API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy."
)
QUOTA: Final = "You have exhausted your capacity on this model. Your quota will reset after 3h5m12s."
INIT: Final = {"type": "init", "session_id": "s", "model": "gemini-x"}


def read(cli: str, *events: dict[str, Any], exit_code: int = 0, stderr: str = "") -> Outcome:
    """Return the outcome of a stream of these events."""
    dialect = adapter_for(cli).dialect()
    dialect.feed(b"".join(json.dumps(event).encode() + b"\n" for event in events))
    return dialect.outcome(ExitRecord("exited", exit_code=exit_code, ended_at=ENDED), stderr)


def said(stop_reason: str | None, **more: Any) -> dict[str, Any]:
    """Return a message of claude."""
    message: dict[str, Any] = {"id": "m1", "model": "claude-x", "content": [], "stop_reason": stop_reason}
    return {"type": "assistant", "message": message, **more}


def result(text: str = "", **more: Any) -> dict[str, Any]:
    """Return a result of claude."""
    return {"type": "result", "subtype": "success", "is_error": False, "result": text, **more}


@pytest.mark.parametrize(
    ("cli", "events"),
    [
        ("claude", [result(WORDS, stop_reason="refusal")]),
        ("claude", [result("", stop_reason="refusal")]),
        ("claude", [result(WORDS)]),
        ("claude", [said("refusal"), result("")]),
        ("claude", [said("refusal"), result(WORDS, is_error=True, terminal_reason="api_error")]),
        ("codex", [{"type": "turn.failed", "error": {"message": "flagged for possible cybersecurity risk"}}]),
        (
            "gemini",
            [
                INIT,
                {"type": "error", "severity": "error", "message": "The model response was blocked due to safety settings."},
                {"type": "result", "status": "error", "stats": {}},
            ],
        ),
        (
            "copilot",
            [{"type": "session.error", "data": {"message": "the response was blocked by content filtering."}}],
        ),
        ("opencode", [{"type": "step_finish", "part": {"reason": "content-filter"}}]),
        (
            "opencode",
            [{"type": "error", "error": {"name": "ContentFilterError", "data": {"message": "blocked by the content filter"}}}],
        ),
    ],
)  # fmt: skip
def test_a_model_that_refuses_is_told_as_such(cli: str, events: list[dict[str, Any]]) -> None:
    """A refusal is no answer, even with exit code 0."""
    outcome = read(cli, *events)
    assert (outcome.ended, outcome.kind, outcome.retryable, outcome.has_answer) == (
        "api_error",
        "refusal",
        False,
        False,
    )
    assert outcome.message.startswith("The model refused this work.")


@pytest.mark.parametrize(
    "events",
    [
        [said("refusal"), said("end_turn"), result("done")],
        [said("refusal"), result("done", stop_reason="end_turn")],
        [said("end_turn"), said("refusal", parent_tool_use_id="t1"), result("done")],
    ],
    ids=["asked again", "the result knows better", "a sub-agent"],
)
def test_a_refusal_that_claude_got_over_is_none(events: list[dict[str, Any]]) -> None:
    """A later answer, or the refusal of a sub-agent only, leaves the run successful."""
    assert read("claude", *events).ended == "ok"


@pytest.mark.parametrize(
    ("error", "kind"),
    [("billing_error", "billing"), ("rate_limit", "rate_limit"), ("server_error", "server_error")],
)
def test_claude_s_own_word_for_an_error_counts_where_its_sentence_is_new(error: str, kind: str) -> None:
    """The error's kind in the message decides, because each release has new sentences."""
    message = {"model": "<synthetic>", "content": [], "stop_reason": "stop_sequence"}
    outcome = read(
        "claude",
        {"type": "assistant", "message": message, "error": error},
        result("The teapot is empty.", is_error=True),
        exit_code=1,
    )
    assert (outcome.ended, outcome.kind) == ("api_error", kind)


@pytest.mark.parametrize(
    "stderr",
    [
        f"Error when talking to Gemini API TerminalQuotaError: {QUOTA}\n    at classifyGoogleError (file:///x.js:1:1)\n",
        f"TerminalQuotaError: {QUOTA}\n{'    at x (file:///x.js:1:1)' * 40}\n  reason: 'QUOTA_EXHAUSTED',\n}}\n",
    ],
    ids=["short", "with its cause"],
)
def test_a_limit_that_only_stderr_names_is_waited_for(stderr: str) -> None:
    """Gemini may name its limit on stderr only, and ends with 1 after `init`."""
    outcome = read("gemini", INIT, exit_code=1, stderr=stderr)
    assert (outcome.kind, outcome.retry_after_seconds, outcome.retry_is_named) == ("rate_limit", 11117.0, True)


def test_a_limit_in_a_result_is_waited_for() -> None:
    """The limit in a result event gives the same wait as the limit on stderr."""
    error = {"type": "TerminalQuotaError", "message": f"[API Error: {QUOTA}]"}
    outcome = read("gemini", INIT, {"type": "result", "status": "error", "error": error}, exit_code=1)
    assert (outcome.kind, outcome.retry_after_seconds) == ("rate_limit", 11117.0)


@pytest.mark.parametrize("cli", ["claude", "codex", "gemini", "copilot", "opencode"])
def test_an_empty_account_that_only_stderr_tells_of_is_told(cli: str) -> None:
    """An empty account is no crash, which would be tried three times."""
    outcome = read(
        cli, {"type": "system"}, exit_code=1, stderr="boot\nCredit balance is too low\n    at x (y.js:1)\n"
    )
    assert (outcome.ended, outcome.kind, outcome.message) == ("api_error", "billing", "Credit balance is too low")


@pytest.mark.parametrize("noise", ["rate limit: retrying", "mcp: not logged in", "connection lost", "overloaded"])
def test_other_words_on_stderr_make_no_crash_an_error_of_the_api(noise: str) -> None:
    """Such words may come from an agent's tools, so they make the crash no API error."""
    assert read("codex", {"type": "thread.started"}, exit_code=1, stderr=noise).ended == "crashed"


GEMINI_LACKS: Final = [
    INIT,
    {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t1"},
    {"type": "tool_result", "tool_id": "t1", "status": "error", "error": {"type": "tool_not_registered"}},
]
CLAUDE_LACKS: Final = [
    said(None),
    {
        "type": "user",
        "message": {
            "content": [
                {
                    "type": "tool_result",
                    "is_error": True,
                    "content": "<tool_use_error>Error: No such tool available: Bash. It is not enabled here.</tool_use_error>",
                }
            ]
        },
    },
]
COPILOT_LACKS: Final = [
    {
        "type": "tool.execution_complete",
        "data": {"success": False, "error": {"message": "Tool 'curl' does not exist."}},
    },
]
OPENCODE_LACKS: Final = [
    {
        "type": "tool_use",
        "sessionID": "s",
        "part": {
            "tool": "invalid",
            "state": {
                "status": "completed",
                "input": {
                    "tool": "bash",
                    "error": "Model tried to call unavailable tool 'bash'. Available tools: invalid, read.",
                },
            },
        },
    },
]
LACKING: Final = [
    ("gemini", GEMINI_LACKS, "run_shell_command"),
    ("claude", CLAUDE_LACKS, "Bash"),
    ("copilot", COPILOT_LACKS, "curl"),
    ("opencode", OPENCODE_LACKS, "bash"),
]


@pytest.mark.parametrize(("cli", "events", "tool"), LACKING)
@pytest.mark.parametrize("cause", ["wall_limit", "idle_limit"])
def test_a_limit_names_the_tools_that_the_agent_lacked(
    cli: str, events: list[dict[str, Any]], tool: str, cause: Cause
) -> None:
    """The message names the missing tools, because more time would not help."""
    dialect = adapter_for(cli).dialect()
    dialect.feed(b"".join(json.dumps(event).encode() + b"\n" for event in [*events, *events]))
    outcome = dialect.outcome(ExitRecord(cause, ended_at=ENDED), "")
    assert outcome.ended == "limit"
    assert outcome.message.endswith(f" It had called tools that it was not given: {tool}.")
    assert "tool" in outcome.remedy


@pytest.mark.parametrize(("cli", "events", "tool"), LACKING[1:])
def test_a_tool_that_the_agent_made_up_takes_nothing_from_its_answer(
    cli: str, events: list[dict[str, Any]], tool: str
) -> None:
    """A model that calls an unknown tool and then answers has a successful run without denials."""
    endings: dict[str, list[dict[str, Any]]] = {
        "claude": [result("done")],
        "copilot": [
            {"type": "assistant.message", "data": {"content": "done"}},
            {"type": "result", "sessionId": "s", "exitCode": 0},
        ],
        "opencode": [
            {"type": "text", "sessionID": "s", "part": {"text": "done"}},
            {"type": "step_finish", "sessionID": "s", "part": {"reason": "stop"}},
        ],
    }
    outcome = read(cli, *events, *endings[cli])
    assert (outcome.ended, outcome.text, outcome.denials) == ("ok", "done", ()), tool
