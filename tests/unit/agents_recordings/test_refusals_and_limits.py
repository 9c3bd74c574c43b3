"""Refusals of the model, and limits that only stderr names, as the five CLIs print them."""

from typing import Any, Final

import pytest
from fakes.agent_streams import BAD, CLIS, outcome_of, part

from septet.agents.outcomes.outcome import ExitRecord

WORDS: Final = (
    "API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy."
)
QUOTA: Final = "You have exhausted your capacity on this model. Your quota will reset after 3h5m12s."
INIT: Final = {"type": "init", "session_id": "s", "model": "gemini-x"}


def said(stop_reason: str | None, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"id": "m1", "model": "claude-x", "content": [], "stop_reason": stop_reason}
    return {"type": "assistant", "message": message, **more}


def result(text: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": text, **more}


@pytest.mark.parametrize(
    ("cli", "events"),
    [
        ("claude", [result(WORDS, stop_reason="refusal")]),
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
        ("copilot", [{"type": "session.error", "data": {"message": "the response was blocked by content filtering."}}]),
        ("opencode", [part("step_finish", reason="content-filter")]),
    ],
)  # fmt: skip
def test_a_model_that_refuses_is_told_as_such(cli: str, events: list[dict[str, Any]]) -> None:
    """A refusal is no answer, even with exit code 0."""
    outcome = outcome_of(cli, *events)
    assert (outcome.ended, outcome.kind, outcome.has_answer) == ("api_error", "refusal", False)
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
    assert outcome_of("claude", *events).ended == "ok"


@pytest.mark.parametrize(("error", "kind"), [("billing_error", "billing"), ("server_error", "server_error")])
def test_claude_s_own_word_for_an_error_counts_where_its_sentence_is_new(error: str, kind: str) -> None:
    """The error's kind in the message decides, because each release has new sentences."""
    message = {"model": "<synthetic>", "content": [], "stop_reason": "stop_sequence"}
    outcome = outcome_of(
        "claude",
        {"type": "assistant", "message": message, "error": error},
        result("The teapot is empty.", is_error=True),
        end=BAD,
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
    end = ExitRecord("exited", exit_code=1, ended_at="2026-11-28T12:00:00.000Z")
    outcome = outcome_of("gemini", INIT, end=end, stderr=stderr)
    assert (outcome.kind, outcome.retry_after_seconds, outcome.retry_is_named) == ("rate_limit", 11117.0, True)


@pytest.mark.parametrize("cli", CLIS)
def test_an_empty_account_that_only_stderr_tells_of_is_told(cli: str) -> None:
    """An empty account is no crash, which would be tried three times."""
    outcome = outcome_of(
        cli, {"type": "system"}, end=BAD, stderr="boot\nCredit balance is too low\n    at x (y.js:1)\n"
    )
    assert (outcome.ended, outcome.kind, outcome.message) == ("api_error", "billing", "Credit balance is too low")


GEMINI_LACKS: Final = [
    INIT,
    {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t1"},
    {"type": "tool_result", "tool_id": "t1", "status": "error", "error": {"type": "tool_not_registered"}},
]
_NO_BASH: Final = "<tool_use_error>Error: No such tool available: Bash. It is not enabled here.</tool_use_error>"
CLAUDE_LACKS: Final = [
    said(None),
    {"type": "user", "message": {"content": [{"type": "tool_result", "is_error": True, "content": _NO_BASH}]}},
]
_NO_CURL: Final = {"success": False, "error": {"message": "Tool 'curl' does not exist."}}
COPILOT_LACKS: Final = [{"type": "tool.execution_complete", "data": _NO_CURL}]
_NO_TOOL: Final = "Model tried to call unavailable tool 'bash'. Available tools: invalid, read."
OPENCODE_LACKS: Final = [
    part("tool_use", tool="invalid", state={"status": "completed", "input": {"tool": "bash", "error": _NO_TOOL}})
]
LACKING: Final = [
    ("gemini", GEMINI_LACKS, "run_shell_command"),
    ("claude", CLAUDE_LACKS, "Bash"),
    ("copilot", COPILOT_LACKS, "curl"),
    ("opencode", OPENCODE_LACKS, "bash"),
]


@pytest.mark.parametrize(("cli", "events", "tool"), LACKING)
def test_a_limit_names_the_tools_that_the_agent_lacked(cli: str, events: list[dict[str, Any]], tool: str) -> None:
    """The message names the missing tools, because more time would not help."""
    outcome = outcome_of(cli, *events, *events, end=ExitRecord("idle_limit"))
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
        "opencode": [part("text", text="done"), part("step_finish", reason="stop")],
    }
    outcome = outcome_of(cli, *events, *endings[cli])
    assert (outcome.ended, outcome.text, outcome.denials) == ("ok", "done", ()), tool
