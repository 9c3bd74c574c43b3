"""Events of the CLIs that no recording shows, in small streams."""

import json
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import ExitRecord, Outcome
from septet.contracts.facts import Usage

GOOD: Final = ExitRecord("exited", exit_code=0)
BAD: Final = ExitRecord("exited", exit_code=1)
CLIS: Final = ("codex", "copilot", "gemini", "opencode")
MEBI: Final = 1024 * 1024


def read(
    cli: str, *events: dict[str, Any], end: ExitRecord = GOOD, stderr: str = "", before: Usage | None = None
) -> Outcome:
    """Return the outcome of a stream of these events."""
    dialect = adapter_for(cli).dialect(before or Usage())
    dialect.feed(b"".join(json.dumps(event).encode() + b"\n" for event in events))
    return dialect.outcome(end, stderr)


def item(kind: str, number: int = 0, *, event: str = "item.completed", **fields: Any) -> dict[str, Any]:
    """Return an item of codex."""
    return {"type": event, "item": {"id": f"item_{number}", "type": kind, **fields}}


def copilot(kind: str, **data: Any) -> dict[str, Any]:
    """Return an event of copilot."""
    return {"type": kind, "data": data}


def part(kind: str, **fields: Any) -> dict[str, Any]:
    """Return an event of opencode."""
    return {"type": kind, "sessionID": "ses_1", "part": fields}


COMPLETED: Final = {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 1}}


@pytest.mark.parametrize("cli", CLIS)
@given(
    event=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "type",
                        "item",
                        "part",
                        "data",
                        "error",
                        "stats",
                        "usage",
                        "tokens",
                        "state",
                        "message",
                        "status",
                    ]
                ),
                inner
                | st.sampled_from(["result", "error", "init", "step_finish", "turn.completed", "session.error"]),
                max_size=5,
            )
        ),
        max_leaves=12,
    )
)
@example(event={"error": {"type": []}})
@settings(max_examples=60)
def test_no_json_breaks_a_dialect(cli: str, event: object) -> None:
    """Fields of any type, in any place, raise no error."""
    dialect = adapter_for(cli).dialect()
    dialect.feed(json.dumps(event).encode() + b"\n")
    assert dialect.outcome(BAD, "").exit_code == 1


@pytest.mark.parametrize("cli", CLIS)
def test_noise_between_the_lines_is_passed_over(cli: str) -> None:
    """A stream without events has no result, and the message quotes the end of stderr."""
    dialect = adapter_for(cli).dialect()
    dialect.feed(b"hello\n42\nnull\n[]\n\xff\xfe\n{}\n")
    outcome = dialect.outcome(BAD, "\x1b[31mit \x1b[0mbroke")
    assert outcome.ended == "crashed"
    assert "it broke" in outcome.message


def test_figures_of_a_codex_thread_never_turn_negative() -> None:
    """If the thread's figures are lower than those of earlier runs, this run used nothing."""
    outcome = read(
        "codex", item("agent_message", text="x"), COMPLETED, before=Usage(input_tokens=99, output_tokens=99)
    )
    assert outcome.usage == Usage()


def test_codex_reasoning_is_part_of_the_output() -> None:
    """Cached and cache-written tokens are subtracted from the input, and reasoning is not added to the output."""
    usage = {
        "input_tokens": 100,
        "cached_input_tokens": 30,
        "cache_write_input_tokens": 20,
        "output_tokens": 9,
        "reasoning_output_tokens": 4,
    }
    outcome = read("codex", item("agent_message", text="x"), {"type": "turn.completed", "usage": usage})
    assert outcome.usage == Usage(
        input_tokens=50, cache_read_tokens=30, cache_write_tokens=20, output_tokens=9, reasoning_tokens=4
    )


def test_codex_counts_tools_that_run_side_by_side_as_one_turn() -> None:
    """A turn ends when a tool has answered; a tool that appears only at its end counts too."""
    outcome = read(
        "codex",
        item("reasoning", 1),
        item("command_execution", 2, event="item.started"),
        item("command_execution", 3, event="item.started"),
        item("command_execution", 2, status="completed"),
        item("command_execution", 3, status="completed"),
        item("web_search", 4),
        item("agent_message", 5, text="Done."),
        COMPLETED,
    )
    assert (outcome.turns, outcome.tool_calls, outcome.text) == (3, 3, "Done.")


@pytest.mark.parametrize("status", ["failed", "declined"])
def test_codex_file_change_that_was_not_done_is_a_denial(status: str) -> None:
    """The run ends normally but counts as denied."""
    outcome = read(
        "codex", item("file_change", 1, status=status), item("agent_message", 2, text="Done."), COMPLETED
    )
    assert (outcome.ended, outcome.denials, outcome.text) == ("denied", ("apply_patch",), "Done.")


def test_codex_command_that_its_sandbox_rejected_is_a_denial() -> None:
    """Only stderr shows this denial."""
    words = "2026-01-01T00:00:00Z ERROR codex_core::tools::router: error=command rejected by policy"
    outcome = read("codex", item("agent_message", text="Done."), COMPLETED, stderr=words)
    assert outcome.denials == ("exec_command",)


def test_codex_error_item_is_a_warning_and_no_tool() -> None:
    """An item of the type `error` is a warning, such as about a model without metadata, and the run continues."""
    stream = adapter_for("codex").dialect()
    odd = {"type": "item.completed", "item": {"id": "0", "type": "error", "message": "no metadata"}}
    stream.feed(json.dumps(odd).encode() + b"\n")
    outcome = stream.outcome(ExitRecord(cause="exited", exit_code=0), "")
    assert (outcome.warnings, outcome.tool_calls, outcome.turns) == (("no metadata",), 0, 0)


def test_codex_turn_that_failed_and_was_taken_up_again_counts() -> None:
    """A completed turn after an error gives the answer."""
    failed = {"type": "error", "message": "stream error"}
    assert read("codex", failed, item("agent_message", text="Done."), COMPLETED).text == "Done."


def test_codex_answer_is_of_the_last_turn_that_is_completed() -> None:
    """Text of an unfinished later turn is no answer."""
    events = [item("agent_message", 1, text="Done."), COMPLETED, item("agent_message", 2, text="And now I")]
    assert read("codex", *events).text == "Done."


@pytest.mark.parametrize(
    ("words", "kind", "retryable"),
    [
        ("unexpected status 503 Service Unavailable: try later", "server_error", True),
        ("The 'x-1' model is not supported when using Codex with a ChatGPT account.", "unknown_model", False),
        ("Codex ran out of room in the model's context window. Start a new thread.", "context_length", False),
        ("You've hit your usage limit. Try again later.", "rate_limit", True),
        ("You exceeded your current quota, please check your plan and billing details.", "billing", False),
        ("Missing environment variable: `OPENAI_API_KEY`.", "authentication", False),
        (
            "Your access token could not be refreshed because your refresh token was revoked.",
            "authentication",
            False,
        ),
        ("Usage not included with the plan", "billing", False),
        (
            "To use Codex with your ChatGPT plan, upgrade to Plus: https://openai.com/chatgpt/pricing.",
            "billing",
            False,
        ),
        ("We're currently experiencing high demand, which may cause temporary errors.", "overloaded", True),
        ("stream disconnected before completion: idle timeout waiting for SSE", "network", True),
    ],
)
def test_codex_errors_are_understood_by_their_words(words: str, kind: str, *, retryable: bool) -> None:
    """The words decide, because codex's stream has no status."""
    outcome = read("codex", {"type": "turn.failed", "error": {"message": words}}, end=BAD)
    assert (outcome.ended, outcome.kind, outcome.retryable) == ("api_error", kind, retryable)
    assert outcome.message == words


def test_codex_turn_that_failed_without_an_error_is_an_api_error_all_the_same() -> None:
    """A failed turn without words is an unknown error."""
    assert read("codex", {"type": "turn.failed"}, end=BAD).kind == "unknown"


def test_run_that_answers_again_is_no_longer_trying() -> None:
    """A limit after a successful request is a limit, and no error of the API."""
    events = (
        {"type": "error", "message": "Reconnecting... 1/2 (stream disconnected)"},
        item("command_execution", 1, event="item.completed"),
    )
    limit = ExitRecord("idle_limit", signal=9)
    assert (read("codex", events[0], end=limit).ended, read("codex", *events, end=limit).ended) == (
        "api_error",
        "limit",
    )


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ('{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}', "authentication"),
        (
            '{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens"}}',
            "context_length",
        ),
        ("exception TypeError: fetch failed sending request", "network"),
        ('{"error":{"code":429,"message":"RESOURCE_EXHAUSTED"}}', "rate_limit"),
        ('{"error":{"code":404,"message":"models/nope is not found"}}', "unknown_model"),
        ("something else", "unknown"),
    ],
)
def test_gemini_errors_are_understood_by_their_words(words: str, kind: str) -> None:
    """The type of gemini's API errors is always `unknown`, so the message decides."""
    error = {"type": "unknown", "message": f"[API Error: {words}]"}
    outcome = read("gemini", {"type": "result", "status": "error", "error": error}, end=BAD)
    assert (outcome.ended, outcome.kind) == ("api_error", kind)


@pytest.mark.parametrize(
    ("kind_of_error", "ended", "kind", "retryable"),
    [
        ("FatalTurnLimitedError", "limit", "turns", False),
        ("FatalAuthenticationError", "api_error", "authentication", False),
        ("FatalConfigError", "crashed", "refused", False),
        ("FatalInputError", "crashed", "refused", False),
        ("FatalSandboxError", "crashed", "refused", False),
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
    end = ExitRecord("exited", exit_code=53)
    if whole:
        outcome = read(
            "gemini", end=end, stderr="noise\n" + json.dumps({"session_id": "s", "error": error}, indent=1)
        )
    else:
        outcome = read("gemini", {"type": "result", "status": "error", "error": error}, end=end)
    assert (outcome.ended, outcome.kind, outcome.retryable) == (ended, kind, retryable)
    assert "It says why." in outcome.message


def test_gemini_that_reached_its_turns_says_what_to_change() -> None:
    """The remedy names gemini's own setting."""
    error = {"type": "FatalTurnLimitedError", "message": "Reached max session turns for this session."}
    outcome = read("gemini", {"type": "result", "status": "error", "error": error}, end=BAD)
    assert "model.maxSessionTurns" in outcome.remedy


@pytest.mark.parametrize(
    ("code", "ended", "kind"),
    [
        (41, "api_error", "authentication"),
        (42, "crashed", "refused"),
        (53, "limit", "turns"),
        (130, "crashed", "interrupted"),
        (403 & 255, "api_error", "permission"),
        (500 & 255, "api_error", "server_error"),
        (1, "crashed", "refused"),
    ],
)
def test_gemini_exit_codes_tell_where_its_stream_does_not(code: int, ended: str, kind: str) -> None:
    """The exit code is gemini's own, or the low bits of an HTTP status."""
    outcome = read("gemini", end=ExitRecord("exited", exit_code=code), stderr="It says why.")
    assert (outcome.ended, outcome.kind) == (ended, kind)


def test_gemini_without_a_chosen_login_says_how_to_choose_one() -> None:
    """The remedy names the setting that makes gemini use its key."""
    outcome = read("gemini", end=ExitRecord("exited", exit_code=41), stderr="Invalid auth method selected.\n")
    assert (outcome.kind, outcome.retryable) == ("authentication", False)
    assert 'security.auth.selectedType "gemini-api-key"' in outcome.remedy


def test_gemini_error_event_without_more_is_an_api_error() -> None:
    """The message of the error event is the outcome's message."""
    events = ({"type": "error", "severity": "error", "message": "odd"}, {"type": "result", "status": "error"})
    outcome = read("gemini", *events, end=BAD)
    assert (outcome.ended, outcome.message) == ("api_error", "odd")


def test_gemini_error_on_stderr_that_is_no_json_is_passed_over() -> None:
    """Half an object at the end of stderr changes nothing."""
    assert read("gemini", end=BAD, stderr="bad flag\n{\n  half").kind == "refused"


def test_gemini_reasoning_is_what_the_total_holds_beside_input_and_output() -> None:
    """Reasoning is the rest of the total, and is added to the output."""
    stats = {"total_tokens": 17, "input_tokens": 10, "output_tokens": 4, "cached": 6, "input": 4}
    events = (
        {"type": "message", "role": "assistant", "content": "x", "delta": True},
        {"type": "result", "status": "success", "stats": stats},
    )
    usage = read("gemini", *events).usage
    assert usage == Usage(input_tokens=4, cache_read_tokens=6, output_tokens=7, reasoning_tokens=3)


def test_gemini_statistics_of_another_shape_are_nothing() -> None:
    """The answer counts without usage figures."""
    events = (
        {"type": "message", "role": "assistant", "content": "x"},
        {"type": "result", "status": "success", "stats": [1]},
    )
    outcome = read("gemini", *events)
    assert (outcome.ended, outcome.usage) == ("ok", Usage())


def test_copilot_error_that_it_got_over_is_none() -> None:
    """An answer after an error of the session counts."""
    outcome = read(
        "copilot",
        copilot("session.error", message="oops", statusCode=500),
        copilot("assistant.message", content="Done.", toolRequests=[]),
        {"type": "result", "sessionId": "s", "exitCode": 0},
    )
    assert (outcome.ended, outcome.text) == ("ok", "Done.")


def test_copilot_denied_tool_is_named() -> None:
    """The error's code marks a denied tool; another error of a tool is no denial."""
    outcome = read(
        "copilot",
        copilot("tool.execution_start", toolCallId="1", toolName="bash"),
        copilot("tool.execution_start", toolCallId="2", toolName="view"),
        copilot("tool.execution_complete", toolCallId="1", success=False, error={"code": "denied"}),
        copilot("tool.execution_complete", toolCallId="2", success=False, error="no such file"),
        copilot("assistant.message", content="Could not.", toolRequests=[]),
        {"type": "result", "sessionId": "s", "exitCode": 0},
    )
    assert (outcome.ended, outcome.denials, outcome.text) == ("denied", ("bash",), "Could not.")


def test_copilot_still_trying_at_the_limit_is_an_api_error() -> None:
    """A request that got no answer before the limit is an error of the kind `network`."""
    failed = copilot("model.call_failure", failureKind="transport", errorMessage="ECONNREFUSED", model="gpt-5.4")
    outcome = read("copilot", failed, {"type": "model.call_start"}, end=ExitRecord("wall_limit", signal=9))
    assert (outcome.ended, outcome.kind, outcome.model) == ("api_error", "network", "gpt-5.4")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("The model rejected the prompt as too long.", None),
        ("CAPIError: 400 prompt token count of 93854 exceeds the limit of 90000", 400),
        ("This model's maximum prompt length is 131072 but the request contains 136973 tokens.", 400),
    ],
)
def test_copilot_that_has_no_room_is_at_its_context_length(words: str, status: int | None) -> None:
    """A prompt that is too long is no retryable error; a new session may help."""
    outcome = read(
        "copilot", copilot("session.error", errorType="query", message=words, statusCode=status), end=BAD
    )
    assert (outcome.ended, outcome.kind, outcome.retryable) == ("api_error", "context_length", False)


_OVERFLOW: Final = {
    "type": "error",
    "error": {"name": "ContextOverflowError", "data": {"message": "too many tokens"}},
}
_SUMMARY: Final = (part("step_start"), part("text", text="A summary."), part("step_finish", reason="stop"))


@pytest.mark.parametrize(
    "end",
    [
        ExitRecord("wall_limit", signal=9),
        ExitRecord("idle_limit", signal=9),
        ExitRecord("ended", why="turn_limit", signal=15),
        ExitRecord("ended", why="after_result", signal=15),
        ExitRecord("exited", signal=9),
    ],
    ids=["wall", "idle", "turns", "after a result", "killed"],
)
def test_opencode_that_compacts_in_a_loop_is_at_its_context_length(end: ExitRecord) -> None:
    """A loop of summaries and overflows ends at a limit, and the summary is no answer."""
    for events in ((*_SUMMARY, _OVERFLOW), (_OVERFLOW, *_SUMMARY), (_OVERFLOW, *_SUMMARY, part("step_start"))):
        outcome = read("opencode", *events, end=end)
        assert (outcome.ended, outcome.kind, outcome.text) == ("api_error", "context_length", None)


def test_opencode_that_recovers_from_an_overflow_has_answered() -> None:
    """An answer after the summary counts, although opencode ends with 1 (opencode issue 39573)."""
    answered = (part("step_start"), part("text", text="Done."), part("step_finish", reason="stop"))
    outcome = read("opencode", _OVERFLOW, *_SUMMARY, part("step_start"), part("tool_use"), *answered, end=BAD)
    assert (outcome.ended, outcome.text) == ("ok", "Done.")


_RESET: Final = {
    "type": "error",
    "error": {"name": "APIError", "data": {"message": "ECONNRESET", "statusCode": 200, "isRetryable": True}},
}


def test_opencode_that_got_over_an_error_has_answered() -> None:
    """An answer after an error in a step counts, although opencode ends with 1 (opencode issue 50062)."""
    said, stop = part("text", text="Done."), part("step_finish", reason="stop")
    outcome = read("opencode", part("step_start"), _RESET, said, stop, end=BAD)
    assert (outcome.ended, outcome.text) == ("ok", "Done.")
    outcome = read("opencode", part("step_start"), _RESET, part("step_start"), said, stop, end=BAD)
    assert (outcome.ended, outcome.text) == ("ok", "Done.")


@pytest.mark.parametrize(
    "after", [(), (part("step_finish", reason="stop"),), (part("text", text="b"),)], ids=["end", "finish", "text"]
)
def test_opencode_that_did_not_finish_after_an_error_has_failed(after: tuple[dict[str, Any], ...]) -> None:
    """Text before the error, or after it without a complete step, is no answer."""
    outcome = read("opencode", part("step_start"), part("text", text="a"), _RESET, *after, end=BAD)
    assert (outcome.ended, outcome.text) == ("api_error", None)


@pytest.mark.parametrize("end", [ExitRecord("wall_limit", signal=9), ExitRecord("exited", signal=9)])
def test_opencode_that_was_killed_has_not_answered(end: ExitRecord) -> None:
    """Without a last event the step need not have been the last, so its text is no answer."""
    outcome = read("opencode", *_SUMMARY, end=end)
    assert (outcome.ended, outcome.text) != ("ok", "A summary.")
    assert outcome.text is None


def test_opencode_that_works_on_after_a_summary_is_not_at_its_end() -> None:
    """A further step takes the result back, so that the engine does not end the agent for lingering."""
    dialect = adapter_for("opencode").dialect()
    results = []
    for event in (*_SUMMARY, part("step_start"), part("tool_use"), part("step_finish", reason="tool-calls")):
        dialect.feed(json.dumps(event).encode() + b"\n")
        results.append(dialect.progress.results)
    assert results == [0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("error", "ended", "kind"),
    [
        ({"name": "ProviderAuthError", "data": {"message": "no key"}}, "api_error", "authentication"),
        ({"name": "ProviderModelNotFoundError", "data": {}}, "api_error", "unknown_model"),
        ({"name": "ContextOverflowError", "data": {}}, "api_error", "context_length"),
        ({"name": "MessageOutputLengthError", "data": {}}, "limit", "output_tokens"),
        ({"name": "MessageAbortedError", "data": {"message": "Aborted"}}, "crashed", "interrupted"),
        ({"name": "APIError", "data": {"message": "busy", "statusCode": 529}}, "api_error", "overloaded"),
        ({"name": "UnknownError"}, "api_error", "unknown"),
    ],
)
def test_opencode_errors_are_understood_by_name_or_status(error: dict[str, Any], ended: str, kind: str) -> None:
    """The name decides if the error has no status."""
    outcome = read("opencode", {"type": "error", "sessionID": "ses_1", "error": error}, end=BAD)
    assert (outcome.ended, outcome.kind) == (ended, kind)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("7", 7.0), ("soon", 60.0), ("9" * 400, 60.0), (None, 60.0)],
    ids=["7", "soon", "too long", "none"],
)
def test_opencode_says_when_a_limit_ends(given: str | None, seconds: float) -> None:
    """A `retry-after` header counts if it is a number of seconds."""
    data = {"message": "slow", "statusCode": 429, "responseHeaders": {"retry-after": given}}
    outcome = read("opencode", {"type": "error", "error": {"name": "APIError", "data": data}}, end=BAD)
    assert (outcome.retryable, outcome.retry_after_seconds) == (True, seconds)


def test_opencode_keeps_nothing_of_headers_and_body() -> None:
    """Only the message of an error event is kept, because headers and body may hold secrets."""
    data = {
        "message": "no",
        "statusCode": 401,
        "responseHeaders": {"set-cookie": "s3cret"},
        "responseBody": "s3cret",
    }
    outcome = read("opencode", {"type": "error", "error": {"name": "APIError", "data": data}}, end=BAD)
    assert "s3cret" not in repr(outcome)


def test_opencode_answer_that_was_cut_is_at_a_limit() -> None:
    """A step that ends at the token limit gives no answer."""
    outcome = read("opencode", part("step_start"), part("text", text="half"), part("step_finish", reason="length"))
    assert (outcome.ended, outcome.kind, outcome.text) == ("limit", "output_tokens", None)


def test_opencode_adds_up_its_steps() -> None:
    """Tokens and costs are added up, reasoning counts as output, and the last step's text is the answer."""
    tokens = {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 3, "write": 1}}
    step = part("step_finish", reason="tool-calls", tokens=tokens, cost=0.25)
    last = part("step_finish", reason="stop", tokens=tokens, cost=0.5)
    outcome = read(
        "opencode",
        part("step_start"),
        part("text", text="a"),
        step,
        part("step_start"),
        part("text", text="b"),
        last,
    )
    assert outcome.text == "b"
    assert outcome.usage == Usage(
        input_tokens=20,
        output_tokens=14,
        cache_read_tokens=6,
        cache_write_tokens=2,
        reasoning_tokens=4,
        cost_usd=0.75,
    )


@pytest.mark.parametrize(
    ("given", "shown"), [({"command": "git  push\norigin"}, "bash(git push origin)"), ([1], "bash")]
)
def test_opencode_denial_shows_what_was_asked(given: object, shown: str) -> None:
    """A tool that a rule forbids is a denial, shown with its command."""
    state = {
        "status": "error",
        "input": given,
        "error": "The user has specified a rule which prevents you from it.",
    }
    outcome = read("opencode", part("step_start"), part("tool_use", tool="bash", state=state))
    assert (outcome.ended, outcome.denials) == ("denied", (shown,))


@pytest.mark.parametrize("cli", ["copilot", "opencode"])
def test_warnings_of_stderr_are_kept_and_bounded(cli: str) -> None:
    """The last five lines of stderr are warnings, except if the CLI refused to start."""
    words = "\n".join(f"warning {number}" for number in range(30))
    assert read(cli, {"type": "anything"}, stderr=words).warnings == tuple(
        f"warning {number}" for number in range(25, 30)
    )
    assert read(cli, end=BAD, stderr=words).warnings == ()


def test_notes_are_bounded() -> None:
    """The outcome keeps at most 20 denials and 20 warnings of 300 characters."""
    words = "\n".join(["WARNING: " + "x" * 999, "ERROR codex_core::tools::router: error=patch rejected"] * 40)
    outcome = read("codex", item("agent_message", text="x"), COMPLETED, stderr=words)
    assert (len(outcome.denials), len(outcome.warnings)) == (20, 20)
    assert max(map(len, outcome.warnings)) <= 300


def test_of_a_long_answer_the_end_is_kept() -> None:
    """The last 4 Mi characters of an answer in deltas are kept, so that memory stays bounded."""
    delta = {"type": "message", "role": "assistant", "content": "a" * MEBI, "delta": True}
    last = {"type": "message", "role": "assistant", "content": "the end", "delta": True}
    text = read("gemini", *[delta] * 10, last, {"type": "result", "status": "success"}).text
    assert text is not None
    assert len(text) == 4 * MEBI
    assert text.endswith("athe end")


def test_document_counts_once_where_one_of_its_lines_is_an_event_too() -> None:
    """An array over several lines is read as one document, and its last line counts only once."""
    step = {"type": "step_finish", "part": {"reason": "stop", "tokens": {"input": 7}, "cost": 0.5}}
    answer = {"type": "text", "sessionID": "ses_1", "part": {"text": "Done."}}
    dialect = adapter_for("opencode").dialect()
    dialect.feed(f"[\n{json.dumps(answer)},\n{json.dumps(step)}\n]\n".encode())
    outcome = dialect.outcome(GOOD, "")
    assert (outcome.ended, outcome.text) == ("ok", "Done.")
    assert (outcome.usage.input_tokens, outcome.usage.cost_usd) == (7, 0.5)
    assert dialect.progress.last_event == "step_finish"


@pytest.mark.parametrize("usage", [None, [], "3000", {"input_tokens": "many"}])
def test_codex_usage_of_another_shape_is_none(usage: object) -> None:
    """The turn is completed without usage figures."""
    outcome = read("codex", item("agent_message", text="Done."), {"type": "turn.completed", "usage": usage})
    assert (outcome.ended, outcome.usage) == ("ok", Usage())


@pytest.mark.parametrize("models", [{}, {"model_usage_since_last_result": {}}])
def test_a_claude_that_was_interrupted_has_used_what_its_messages_say(models: dict[str, object]) -> None:
    """If the last result has no figures, the usage in the messages counts."""
    said = {"id": "msg_1", "model": "claude", "content": [], "usage": {"input_tokens": 7, "output_tokens": 1}}
    nothing = {"input_tokens": 0, "output_tokens": 0}
    result = {"type": "result", "subtype": "error_during_execution", "is_error": True, "usage": nothing, **models}
    outcome = read("claude", {"type": "assistant", "message": said}, result, end=BAD)
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (7, 1)
