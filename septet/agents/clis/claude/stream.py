"""Read claude's stream-json, or the shorter form that a wrapper prints; make the outcome and the transcript."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from septet.agents.clis.claude.events import ANYTHING, ITEMS, TEXT, Event
from septet.agents.clis.claude.totals import StreamTotals, denials_of, usage_of
from septet.agents.outcomes import api_errors, endings
from septet.agents.outcomes.outcome import Ended, Ending, ExitRecord, Outcome, StreamProgress
from septet.agents.outcomes.stream import EventReader, cost_of, read_field
from septet.agents.outcomes.transcript import NOT_SAID, EventTranscript, TranscriptEntry, to_object, to_text
from septet.contracts.facts import Usage

_API_ERROR: Final = "API Error"
_KINDS: Final[Mapping[str, str]] = {
    "authentication_failed": "authentication",
    "oauth_org_not_allowed": "permission",
    "verification_required": "permission",
    "account_on_hold": "billing",
    "billing_error": "billing",
    "rate_limit": "rate_limit",
    "overloaded": "overloaded",
    "invalid_request": "invalid_request",
    "model_not_found": "unknown_model",
    "server_error": "server_error",
}
_API_REASONS: Final = frozenset({"api_error", "prompt_too_long"})
_UNKNOWN_SESSION: Final = re.compile(r"No conversation found")
_BY_SUBTYPE: Final[Mapping[str, tuple[Ended, str, str]]] = {
    "error_max_turns": ("limit", "turns", "Start it again with more turns (`--step STEP.turns=N`)."),
    "error_max_budget_usd": ("limit", "budget", "Allow a larger budget, then run `septet retry`."),
    "error_max_structured_output_retries": ("no_result", "structured_output", ""),
}


class ClaudeStream:
    """Reads the stream of one run; returns the run's progress and at the end its outcome."""

    def __init__(self) -> None:
        self._totals = StreamTotals()
        self._reader = EventReader(Event, lambda event: isinstance(event.session_id, str))

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes, which may be cut anywhere."""
        take = self._totals.take
        for event in self._reader.feed(chunk):
            take(event)

    @property
    def progress(self) -> StreamProgress:
        """The progress of the run, as far as the run's stream was read."""
        totals, result = self._totals, self._totals.final
        waits_for = totals.tasks.waits_for if result is not None and not result.has_failed else ""
        return StreamProgress(
            session_id=totals.session,
            last_event=totals.last.name if totals.last is not None else "",
            turns=totals.turns,
            tokens=totals.tokens,
            results=totals.results,
            waits_for=waits_for,
            result_text=(_answer(result)[0] or "") if waits_for == "commands" else "",
        )

    def outcome(self, end: ExitRecord, stderr: str) -> Outcome:
        """Return the outcome of the run, after the whole stream was fed."""
        rest, document = self._reader.finish()
        if document is not None:
            self._totals = StreamTotals()
        for event in rest if document is None else document:
            self._totals.take(event)
        totals = self._totals
        result = totals.final
        ending = _ending(totals, end, stderr.strip() or self._reader.words)
        answer = _answer(result) if ending.ended in {"ok", "denied"} or ending.kind == "empty" else (None, None)
        pieces = totals.pieces if ending.ended in {"ok", "denied"} else ()
        text = answer[0] or "".join(pieces) or answer[0]
        has_answer = text is not None
        outcome = Outcome(
            ended=ending.ended,
            text=text,
            structured=answer[1],
            pieces=pieces if pieces not in ((), (text,)) else (),
            session_id=totals.session,
            model=totals.model,
            usage=_usage(totals, result),
            context_tokens=totals.context_tokens,
            turns=result.num_turns if result is not None and isinstance(result.num_turns, int) else totals.turns,
            tool_calls=totals.tool_calls,
            api_retries=totals.api_retries,
            denials=denials_of(result) if result is not None else tuple(totals.denied_tools),
            warnings=(*totals.warnings, *(_warnings(totals, stderr) if has_answer else ())),
            skipped_lines=self._reader.skipped_lines,
        )
        return endings.with_ending(outcome, ending, end, totals.lacked_tools)


def _ending(totals: StreamTotals, end: ExitRecord, stderr: str) -> Ending:
    result = totals.final
    if result is not None and not endings.is_cancelled(end):
        text = _answer(result)[0] or ""
        has_failed = result.has_failed or totals.is_refused or text.startswith(_API_ERROR)
        missing = totals.tasks.missing_work(ended_by_itself=end.cause == "exited")
        if not has_failed and totals.is_local:
            return Ending("crashed", "local_answer", f"The CLI answered by itself, and asked no model: {text}")
        if missing and not has_failed:
            return _unfinished_ending(missing, end, stderr)
        if not has_failed and (endings.leaves_result_standing(end) or totals.took_back_nothing):
            return endings.with_result(text or "".join(totals.pieces), denials_of(result))
        if has_failed and (end.cause == "exited" or result.subtype != "error_during_execution"):
            return _failure_ending(result, totals)
    is_said = totals.pieces and not (totals.is_refused or totals.api_error)
    if result is None and is_said and end.cause == "exited" and end.exit_code == 0:
        return Ending("ok")
    return endings.without_result(end, stderr, spoke=totals.last is not None, unknown_session=_UNKNOWN_SESSION)


def _unfinished_ending(tasks: str, end: ExitRecord, stderr: str) -> Ending:
    """Return the ending of a run with unfinished background tasks; its session can continue the work."""
    if end.cause == "exited" or end.why == endings.AFTER_RESULT:
        return Ending("crashed", "unfinished", f"The agent ended before its background tasks did: {tasks}.")
    return endings.without_result(end, stderr, spoke=True)


def _failure_ending(result: Event, totals: StreamTotals) -> Ending:
    errors = read_field(result.errors, ITEMS) or []
    words = "; ".join(map(str, errors)) or _answer(result)[0] or ""
    if totals.is_refused:
        return endings.api_ending(api_errors.REFUSAL, words)
    words = words or NOT_SAID
    if str(result.subtype) in _BY_SUBTYPE:
        ended, kind, remedy = _BY_SUBTYPE[str(result.subtype)]
        return Ending(ended, kind, words, remedy)
    if result.subtype not in ("success", None):
        return Ending("crashed", "unknown_session" if _UNKNOWN_SESSION.search(words) else "interrupted", words)
    if "output token maximum" in words:
        remedy = "a larger CLAUDE_CODE_MAX_OUTPUT_TOKENS, then run `septet retry`."
        return Ending("limit", "output_tokens", words, f"Start the worker (`septet up`) again with {remedy}")
    return _api_error(result, totals, words)


def _api_error(result: Event, totals: StreamTotals, words: str) -> Ending:
    status = result.api_error_status if isinstance(result.api_error_status, int) else None
    error = api_errors.classify(status, words, kind=_KINDS.get(totals.api_error, "unknown"))
    by_api = status is not None or str(result.terminal_reason) in _API_REASONS or words.startswith(_API_ERROR)
    if error.kind == "unknown" and not by_api:
        return Ending("crashed", "agent_error", words)
    return endings.api_ending(error, words, resets_at=totals.resets_at)


def _answer(result: Event | None) -> tuple[str | None, object]:
    """Return a result event's text and structured output; the text is JSON if the event's `result` is not text."""
    if result is None:
        return None, None
    structured = read_field(result.structured_output, ANYTHING)
    raw = bytes(result.result)
    if raw.startswith(b'"'):
        return read_field(result.result, TEXT), structured
    if raw:
        return raw.decode("utf-8", errors="replace"), structured
    return (json.dumps(structured, ensure_ascii=False) if structured is not None else None), structured


def _warnings(totals: StreamTotals, stderr: str) -> tuple[str, ...]:
    commands = totals.tasks.commands
    left = (f"commands in the background were stopped after the result: {commands}",) if commands else ()
    return (*left, *endings.warnings_in(stderr))


def _usage(totals: StreamTotals, result: Event | None) -> Usage:
    """Return the usage of this run, from the best source that the stream has.

    The best source is the result's usage by model. Next is the result's `usage`, which lacks the request at which
    a budget ended the run. The last source is the sum of the messages, for a result without tokens.
    `total_cost_usd`, used with the second source, can be the whole session's cost (in 2.1.329, not in 2.1.197).
    """
    if result is None:
        return totals.usage
    told = totals.usage_by_models or usage_of(result, cost_of(result.total_cost_usd))
    return told if told is not None and (told.tokens or not totals.tokens) else totals.usage


class ClaudeTranscript(EventTranscript):
    """Turns claude's stream into entries: the model's texts, tool calls, tool results, errors, and the result."""

    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the transcript's entries for an event."""
        kind = event.get("type")
        if kind in {"assistant", "user"}:
            content = to_object(event.get("message")).get("content")
            for block in content if isinstance(content, list) else []:
                yield from self._block(kind, to_object(block))
        elif kind == "text":
            yield TranscriptEntry("text", to_text(event.get("text")))
        elif kind == "result" or (kind is None and "result" in event):
            yield _result(event)
        elif event.get("subtype") == "api_retry":
            status, error = event.get("error_status"), to_text(event.get("error"))
            yield TranscriptEntry("error", f"The model API: {error} {to_text(status)}; the CLI asks it again.")
        elif event.get("subtype") == "permission_denied":
            yield TranscriptEntry(
                "error", to_text(event.get("message")) or f"Denied: {to_text(event.get('tool_name'))}"
            )

    def _block(self, kind: str, block: dict[str, Any]) -> Iterator[TranscriptEntry]:
        what = block.get("type")
        if what == "text" and kind == "assistant":
            yield TranscriptEntry("text", to_text(block.get("text")))
        elif what == "tool_use":
            yield self.begin_call(block.get("id"), block.get("name"), block.get("input"))
        elif what == "tool_result":
            yield self.end_call(block.get("tool_use_id"), block.get("content"))


def _result(event: dict[str, Any]) -> TranscriptEntry:
    errors = event.get("errors")
    words = "; ".join(map(to_text, errors)) if isinstance(errors, list) else ""
    if event.get("is_error") or words:
        return TranscriptEntry("error", words or to_text(event.get("result")) or NOT_SAID)
    return TranscriptEntry("result", to_text(event.get("result")))
