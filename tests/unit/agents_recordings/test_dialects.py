"""Events of the CLIs that no recording shows, in small streams."""

import json
from typing import Any, Final

import pytest
from fakes.agent_streams import BAD, GOOD, KILLED, lines, outcome_of, part
from hypothesis import example, given, settings
from hypothesis import strategies as st

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import ExitRecord
from septet.contracts.facts import Usage

WALL: Final = ExitRecord("wall_limit", signal=9)
FIELDS: Final = ["type", "item", "part", "data", "error", "stats", "usage", "tokens", "state", "message", "status"]
TYPES: Final = ["result", "error", "init", "step_finish", "turn.completed", "session.error"]


def item(kind: str, number: int = 0, *, event: str = "item.completed", **fields: Any) -> dict[str, Any]:
    return {"type": event, "item": {"id": f"item_{number}", "type": kind, **fields}}


def copilot(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


COMPLETED: Final = {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 1}}
ANSWERED: Final = (part("text", text="Done."), part("step_finish", reason="stop"))
SUMMARY: Final = (part("step_start"), part("text", text="A summary."), part("step_finish", reason="stop"))


def failed(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "error", "sessionID": "ses_1", "error": {"name": name, "data": data}}


OVERFLOW: Final = failed("ContextOverflowError", message="too many tokens")
RESET: Final = failed("APIError", message="ECONNRESET", statusCode=200, isRetryable=True)


@pytest.mark.parametrize("cli", ["codex", "copilot", "gemini", "opencode"])
@given(
    event=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(FIELDS), inner | st.sampled_from(TYPES), max_size=5)
        ),
        max_leaves=12,
    )
)
@example(event={"error": {"type": []}})
@settings(max_examples=60)
def test_no_json_breaks_a_dialect(cli: str, event: object) -> None:
    """Fields of any type, in any place, raise no error."""
    dialect = adapter_for(cli).dialect()
    dialect.feed(lines([event]))
    assert dialect.outcome(BAD, "").exit_code == 1


def test_figures_of_a_codex_thread_never_turn_negative() -> None:
    """If the thread's figures are lower than those of earlier runs, this run used nothing."""
    before = Usage(input_tokens=99, output_tokens=99)
    assert outcome_of("codex", item("agent_message", text="x"), COMPLETED, before=before).usage == Usage()


def test_codex_reasoning_is_part_of_the_output() -> None:
    """Cached and cache-written tokens are subtracted from the input, and reasoning is not added to the output."""
    usage = {"input_tokens": 100, "cached_input_tokens": 30, "cache_write_input_tokens": 20}
    usage |= {"output_tokens": 9, "reasoning_output_tokens": 4}
    outcome = outcome_of("codex", item("agent_message", text="x"), {"type": "turn.completed", "usage": usage})
    assert outcome.usage == Usage(
        input_tokens=50, cache_read_tokens=30, cache_write_tokens=20, output_tokens=9, reasoning_tokens=4
    )


def test_codex_tools_that_its_sandbox_rejected_are_denials() -> None:
    """The item shows a denied change of a file, and only stderr shows a denied command."""
    words = "2026-01-01T00:00:00Z ERROR codex_core::tools::router: error=command rejected by policy"
    declined, said = item("file_change", 1, status="declined"), item("agent_message", 2, text="Done.")
    assert outcome_of("codex", declined, said, COMPLETED).denials == ("apply_patch",)
    assert outcome_of("codex", said, COMPLETED, stderr=words).denials == ("exec_command",)


def test_run_that_answers_again_is_no_longer_trying() -> None:
    """A limit after a successful request is a limit, and no error of the API."""
    trying = {"type": "error", "message": "Reconnecting... 1/2 (stream disconnected)"}
    assert outcome_of("codex", trying, end=WALL).ended == "api_error"
    assert outcome_of("codex", trying, item("command_execution"), end=WALL).ended == "limit"


@pytest.mark.parametrize(
    ("kind_of_error", "ended", "kind", "retryable"),
    [
        ("FatalTurnLimitedError", "limit", "turns", False),
        ("FatalAuthenticationError", "api_error", "authentication", False),
        ("FatalInputError", "crashed", "refused", False),
        ("FatalCancellationError", "crashed", "interrupted", False),
        ("FatalToolExecutionError", "api_error", "unknown", True),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_gemini_errors_of_its_own_are_understood_by_their_type(
    kind_of_error: str, ended: str, kind: str, *, retryable: bool, whole: bool
) -> None:
    """The type decides errors of the CLI itself, in the stream and in the object on stderr."""
    error = {"type": kind_of_error, "message": "It says why.", "code": 53}
    stderr = "noise\n" + json.dumps({"session_id": "s", "error": error}, indent=1) if whole else ""
    events = [] if whole else [{"type": "result", "status": "error", "error": error}]
    outcome = outcome_of("gemini", *events, end=ExitRecord("exited", exit_code=53), stderr=stderr)
    assert (outcome.ended, outcome.kind, outcome.retryable) == (ended, kind, retryable)
    assert "It says why." in outcome.message
    assert ("model.maxSessionTurns" in outcome.remedy) == (kind == "turns")


@pytest.mark.parametrize(
    ("code", "ended", "kind"),
    [
        (41, "api_error", "authentication"),
        (53, "limit", "turns"),
        (130, "crashed", "interrupted"),
        (403 & 255, "api_error", "permission"),
        (1, "crashed", "refused"),
    ],
)
def test_gemini_exit_codes_tell_where_its_stream_does_not(code: int, ended: str, kind: str) -> None:
    """The exit code is gemini's own, or the low bits of an HTTP status; half an object on stderr says nothing."""
    outcome = outcome_of("gemini", end=ExitRecord("exited", exit_code=code), stderr="It says why.\n{\n  half")
    assert (outcome.ended, outcome.kind) == (ended, kind)


def test_gemini_without_a_chosen_login_says_how_to_choose_one() -> None:
    """The remedy names the setting that makes gemini use its key."""
    end = ExitRecord("exited", exit_code=41)
    outcome = outcome_of("gemini", end=end, stderr="Invalid auth method selected.\n")
    assert 'security.auth.selectedType "gemini-api-key"' in outcome.remedy


def test_gemini_reasoning_is_what_the_total_holds_beside_input_and_output() -> None:
    """Reasoning is the rest of the total, and is added to the output."""
    stats = {"total_tokens": 17, "input_tokens": 10, "output_tokens": 4, "cached": 6, "input": 4}
    usage = outcome_of("gemini", {"type": "result", "status": "success", "stats": stats}).usage
    assert usage == Usage(input_tokens=4, cache_read_tokens=6, output_tokens=7, reasoning_tokens=3)


def test_copilot_denied_tool_is_named() -> None:
    """The error's code marks a denied tool; another error of a tool is no denial."""
    outcome = outcome_of(
        "copilot",
        copilot("tool.execution_start", toolCallId="1", toolName="bash"),
        copilot("tool.execution_start", toolCallId="2", toolName="view"),
        copilot("tool.execution_complete", toolCallId="1", success=False, error={"code": "denied"}),
        copilot("tool.execution_complete", toolCallId="2", success=False, error="no such file"),
        copilot("assistant.message", content="Could not.", toolRequests=[]),
        {"type": "result", "sessionId": "s", "exitCode": 0},
    )
    assert (outcome.ended, outcome.denials, outcome.text) == ("denied", ("bash",), "Could not.")


@pytest.mark.parametrize("end", [WALL, ExitRecord("ended", why="turn_limit", signal=15), KILLED])
def test_opencode_that_compacts_in_a_loop_is_at_its_context_length(end: ExitRecord) -> None:
    """A loop of summaries and overflows ends at a limit, and the summary is no answer."""
    for events in ((*SUMMARY, OVERFLOW), (OVERFLOW, *SUMMARY), (OVERFLOW, *SUMMARY, part("step_start"))):
        outcome = outcome_of("opencode", *events, end=end)
        assert (outcome.ended, outcome.kind, outcome.text) == ("api_error", "context_length", None)


def test_opencode_that_recovers_from_an_overflow_has_answered() -> None:
    """An answer after the summary counts, although opencode ends with 1 (opencode issue 39573)."""
    events = (OVERFLOW, *SUMMARY, part("step_start"), part("tool_use"), part("step_start"), *ANSWERED)
    outcome = outcome_of("opencode", *events, end=BAD)
    assert (outcome.ended, outcome.text) == ("ok", "Done.")


@pytest.mark.parametrize("again", [(), (part("step_start"),)])
def test_opencode_that_got_over_an_error_has_answered(again: tuple[dict[str, Any], ...]) -> None:
    """An answer after an error in a step counts, although opencode ends with 1 (opencode issue 50062)."""
    outcome = outcome_of("opencode", part("step_start"), RESET, *again, *ANSWERED, end=BAD)
    assert (outcome.ended, outcome.text) == ("ok", "Done.")


@pytest.mark.parametrize("after", [(), ANSWERED[:1], ANSWERED[1:]], ids=["end", "text", "finish"])
def test_opencode_that_did_not_finish_after_an_error_has_failed(after: tuple[dict[str, Any], ...]) -> None:
    """Text before the error, or after it without a complete step, is no answer."""
    outcome = outcome_of("opencode", part("step_start"), part("text", text="a"), RESET, *after, end=BAD)
    assert (outcome.ended, outcome.text) == ("api_error", None)


@pytest.mark.parametrize("end", [WALL, KILLED])
def test_opencode_that_was_killed_has_not_answered(end: ExitRecord) -> None:
    """Without a last event the step need not have been the last, so its text is no answer."""
    assert outcome_of("opencode", *SUMMARY, end=end).text is None


def test_opencode_that_works_on_after_a_summary_is_not_at_its_end() -> None:
    """A further step takes the result back, so that the engine does not end the agent for lingering."""
    dialect = adapter_for("opencode").dialect()
    results = []
    for event in (*SUMMARY, part("step_start"), part("tool_use"), part("step_finish", reason="tool-calls")):
        dialect.feed(lines([event]))
        results.append(dialect.progress.results)
    assert results == [0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("error", "ended", "kind"),
    [
        (failed("ProviderAuthError", message="no key"), "api_error", "authentication"),
        (failed("ProviderModelNotFoundError"), "api_error", "unknown_model"),
        (failed("MessageOutputLengthError"), "limit", "output_tokens"),
        (failed("MessageAbortedError", message="Aborted"), "crashed", "interrupted"),
        (failed("APIError", message="busy", statusCode=529), "api_error", "overloaded"),
        ({"type": "error", "error": {"name": "UnknownError"}}, "api_error", "unknown"),
    ],
)
def test_opencode_errors_are_understood_by_name_or_status(error: dict[str, Any], ended: str, kind: str) -> None:
    """The name decides if the error has no status."""
    outcome = outcome_of("opencode", error, end=BAD)
    assert (outcome.ended, outcome.kind) == (ended, kind)


@pytest.mark.parametrize("named", ["soon", "9" * 400])
def test_opencode_waits_as_usual_where_a_header_names_no_believable_time(named: str) -> None:
    """A `retry-after` that is no number of seconds, or far away, gives the usual wait of a minute."""
    busy = failed("APIError", message="slow", statusCode=429, responseHeaders={"retry-after": named})
    outcome = outcome_of("opencode", busy, end=BAD)
    assert (outcome.retry_after_seconds, outcome.retry_is_named) == (60.0, False)


def test_opencode_keeps_nothing_of_headers_and_body() -> None:
    """Only the message of an error event is kept, because headers and body may hold secrets."""
    secret = {"responseHeaders": {"set-cookie": "s3cret"}, "responseBody": "s3cret"}
    outcome = outcome_of("opencode", failed("APIError", message="no", statusCode=401, **secret), end=BAD)
    assert "s3cret" not in repr(outcome)


def test_opencode_answer_that_was_cut_is_at_a_limit() -> None:
    """A step that ends at the token limit gives no answer."""
    outcome = outcome_of("opencode", part("text", text="half"), part("step_finish", reason="length"))
    assert (outcome.ended, outcome.kind, outcome.text) == ("limit", "output_tokens", None)


def test_opencode_denial_shows_what_was_asked() -> None:
    """A tool that a rule forbids is a denial, shown with its command."""
    error, given = "The user has specified a rule which prevents you from it.", {"command": "git  push\norigin"}
    call = part("tool_use", tool="bash", state={"status": "error", "input": given, "error": error})
    outcome = outcome_of("opencode", part("step_start"), call)
    assert (outcome.ended, outcome.denials) == ("denied", ("bash(git push origin)",))


def test_opencode_adds_up_its_steps() -> None:
    """Tokens and costs are added up, and reasoning counts as output."""
    tokens = {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 3, "write": 1}}
    steps = [part("step_finish", reason="stop", tokens=tokens, cost=cost) for cost in (0.25, 0.5)]
    assert outcome_of("opencode", *steps).usage == Usage(
        input_tokens=20,
        output_tokens=14,
        cache_read_tokens=6,
        cache_write_tokens=2,
        reasoning_tokens=4,
        cost_usd=0.75,
    )


def test_notes_are_bounded() -> None:
    """The outcome keeps at most 20 denials and 20 warnings of 300 characters."""
    words = "\n".join(["WARNING: " + "x" * 999, "ERROR codex_core::tools::router: error=patch rejected"] * 40)
    outcome = outcome_of("codex", item("agent_message", text="x"), COMPLETED, stderr=words)
    assert (len(outcome.denials), len(outcome.warnings)) == (20, 20)
    assert max(map(len, outcome.warnings)) <= 300


def test_document_counts_once_where_one_of_its_lines_is_an_event_too() -> None:
    """An array over several lines is read as one document, and its last line counts only once."""
    step = part("step_finish", reason="stop", tokens={"input": 7}, cost=0.5)
    dialect = adapter_for("opencode").dialect()
    dialect.feed(f"[\n{json.dumps(ANSWERED[0])},\n{json.dumps(step)}\n]\n".encode())
    outcome = dialect.outcome(GOOD, "")
    assert (outcome.text, outcome.usage.input_tokens, outcome.usage.cost_usd) == ("Done.", 7, 0.5)


def test_a_claude_that_was_interrupted_has_used_what_its_messages_say() -> None:
    """If the last result has no figures, the usage in the messages counts."""
    said = {"id": "msg_1", "model": "claude", "content": [], "usage": {"input_tokens": 7, "output_tokens": 1}}
    nothing = {"usage": {"input_tokens": 0, "output_tokens": 0}, "model_usage_since_last_result": {}}
    result = {"type": "result", "subtype": "error_during_execution", "is_error": True, **nothing}
    outcome = outcome_of("claude", {"type": "assistant", "message": said}, result, end=BAD)
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (7, 1)
