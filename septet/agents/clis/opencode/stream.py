"""Read opencode's stream, and make the outcome and the transcript."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import msgspec

from septet.agents.outcomes import endings
from septet.agents.outcomes.api_errors import REFUSAL
from septet.agents.outcomes.line_stream import LineEvent, LineStream, api_error
from septet.agents.outcomes.outcome import NO_USAGE, Ending, ExitRecord
from septet.agents.outcomes.stream import call_of, cost_of, count, read_field, text_of
from septet.agents.outcomes.transcript import EventTranscript, TranscriptEntry, to_object, to_text
from septet.contracts.facts import Usage
from septet.contracts.pauses import LONGEST_PAUSE_SECONDS

_DENIED: Final = re.compile(r"rejected permission|rule which prevents")
_INVALID: Final = "invalid"
"""The name of the tool to which opencode redirects the call of a tool that opencode does not have."""
_LACKED: Final = re.compile(r"Model tried to call unavailable tool '([^']+)'")
_STATUS_BY_NAME: Final = {"ProviderAuthError": 401, "ContextOverflowError": 413, "ProviderModelNotFoundError": 404}
_STOPS: Final = frozenset({"wall_limit", "idle_limit", "exited", *endings.RESOURCES})
"""The causes that end an agent from outside; `exited` counts only if a signal ended the agent."""
_STOPS_ON_REQUEST: Final = frozenset(
    ("ended", why) for why in (endings.TURN_LIMIT, endings.AFTER_RESULT, endings.BUDGET)
)
_CUT: Final = Ending(
    "limit",
    "output_tokens",
    "The answer was cut at the model's limit of output tokens.",
    "Raise the model's `limit.output` in opencode's configuration, then run `septet retry`.",
)


class _Cache(msgspec.Struct, frozen=True, gc=False):
    read: Any = 0
    write: Any = 0


class _Tokens(msgspec.Struct, frozen=True, gc=False):
    input: Any = 0
    output: Any = 0
    reasoning: Any = 0
    cache: _Cache = _Cache()


class _State(msgspec.Struct, frozen=True, gc=False):
    error: Any = None
    input: msgspec.Raw = msgspec.Raw()


class _Part(msgspec.Struct, gc=False):
    text: Any = None
    tool: Any = None
    state: _State = _State()
    reason: Any = None
    tokens: _Tokens = _Tokens()
    cost: Any = None


class _ErrorData(msgspec.Struct, frozen=True, gc=False):
    message: Any = None
    status: Any = msgspec.field(name="statusCode", default=None)
    headers: dict[str, Any] = msgspec.field(name="responseHeaders", default_factory=dict)


class _Error(msgspec.Struct, gc=False):
    name: Any = None
    data: _ErrorData = _ErrorData()


class _Event(LineEvent, gc=False):
    session_id: Any = msgspec.field(name="sessionID", default=None)
    part: _Part | None = None
    error: _Error | None = None


def _used_in(step: _Part) -> Usage:
    """Return the usage of a step; unlike opencode's own numbers, its output tokens include reasoning."""
    tokens, reasoning = step.tokens, count(step.tokens.reasoning)
    return Usage(
        input_tokens=count(tokens.input),
        output_tokens=count(tokens.output) + reasoning,
        cache_read_tokens=count(tokens.cache.read),
        cache_write_tokens=count(tokens.cache.write),
        reasoning_tokens=reasoning,
        cost_usd=cost_of(step.cost),
    )


class OpenCodeStream(LineStream[_Event]):
    """Reads opencode's stream, which has no final event; the answer is the last text, if no tool call follows."""

    event_type = _Event
    unknown_session = re.compile(r"Session not found")

    def begin(self) -> None:
        """Forget all facts, because the stream is read from its start."""
        super().begin()
        self._used = NO_USAGE
        self._last_step = 0
        self._has_erred = False
        self._overflow: Ending | None = None

    @property
    def usage(self) -> Usage:
        """The usage of all ended steps of the model."""
        return self._used

    @property
    def context_tokens(self) -> int:
        """The number of tokens that the last step read and wrote."""
        return self._last_step

    def is_own(self, event: _Event) -> bool:
        """Return whether an object on the stream is opencode's event, which always names a session."""
        return isinstance(event.session_id, str)

    def take(self, event: _Event) -> None:
        """Add what one event reports to the facts of the run."""
        facts, kind = self.facts, event.type
        if facts.session_id is None:
            facts.session_id = text_of(event.session_id)
        if kind == "error" and event.error is not None:
            self._take_error(event.error)
        elif event.part is None:
            return
        elif kind == "step_start":
            facts.turns += 1
            facts.results = 0  # the turn continues
            facts.finished, facts.failure = False, None
            facts.hush()
            facts.pieces.clear()
        elif kind == "text":
            facts.say(event.part.text, anew=True)
            facts.keep_piece(event.part.text)
        elif kind == "tool_use":
            facts.tool_calls += 1
            facts.spoke_last = False
            self._overflow = None
            error = event.part.state.error
            if error is not None and _DENIED.search(str(error)):
                arguments = read_field(event.part.state.input, _arguments)
                facts.deny(call_of(event.part.tool, arguments))
            elif event.part.tool == _INVALID:
                facts.lack((read_field(event.part.state.input, _arguments) or {}).get("error"), _LACKED)
        elif kind == "step_finish":
            self._take_step_end(event.part)

    def _take_step_end(self, part: _Part) -> None:
        facts, used = self.facts, _used_in(part)
        self._used = self._used.plus(used)
        self._last_step = used.tokens or self._last_step
        facts.finished = part.reason != "tool-calls"
        facts.spoke_last = facts.spoke_last and facts.finished
        facts.results += facts.finished
        if part.reason == "stop" and facts.spoke_last and facts.failure and facts.failure.ended == "api_error":
            facts.failure = None  # the answer came after the error: the CLI has retried
        if part.reason == "length":
            facts.failure = _CUT
        elif part.reason == "content-filter":
            facts.failure = endings.api_ending(REFUSAL, "")

    def _take_error(self, error: _Error) -> None:
        """Add an error to the facts, without the server's headers and body."""
        words = str(error.data.message or error.name)
        if error.name == "MessageAbortedError":
            self.facts.interrupted = words
        elif error.name == "MessageOutputLengthError":
            self.facts.failure = _CUT
        else:
            self._has_erred, self.facts.spoke_last = True, False
            code = error.data.status
            status = code if isinstance(code, int) else _STATUS_BY_NAME.get(str(error.name))
            self.facts.failure = _not_before(api_error(status, words), error.data.headers.get("retry-after"))
            if self.facts.failure.kind == "context_length":
                self._overflow = self.facts.failure

    def _ending(self, end: ExitRecord, stderr: str) -> Ending:
        """Return the ending of the run.

        After any error the CLI ends with 1, even if it has recovered from the error (issue 50062 of opencode). If
        a session is too long, the CLI summarises the session in a step without tools. It then continues (issue
        39573), or makes further summaries until a limit ends the CLI.
        """
        facts = self.facts
        if end.cause == "exited" and end.signal is None:
            if self._has_erred and facts.finished and facts.failure is None:
                return endings.with_result(facts.text, facts.denials)
        elif end.cause in _STOPS or (end.cause, end.why) in _STOPS_ON_REQUEST:
            if self._overflow is not None:
                return self._overflow
            facts.finished = facts.finished and end.cause not in _STOPS
        return super()._ending(end, stderr)


def _not_before(failure: Ending, retry_after: object) -> Ending:
    seconds = float(retry_after) if isinstance(retry_after, str) and retry_after.isdecimal() else math.inf
    return (
        replace(failure, retry_after_seconds=seconds, retry_is_named=True)
        if failure.retryable and seconds <= LONGEST_PAUSE_SECONDS
        else failure
    )


_arguments: Final = msgspec.json.Decoder(dict[str, Any])


class OpenCodeTranscript(EventTranscript):
    """Turns opencode's stream into entries; the result is the last text of a step without tool calls."""

    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the transcript's entries for an event, without the server's headers and body of an error."""
        kind, part = event.get("type"), to_object(event.get("part"))
        if kind == "step_start":
            self._last = ""
        elif kind == "text":
            self._last = to_text(part.get("text"))
            yield TranscriptEntry("text", self._last)
        elif kind == "tool_use":
            name, state = to_text(part.get("tool")), to_object(part.get("state"))
            yield TranscriptEntry("tool_call", to_text(state.get("input")), name)
            yield TranscriptEntry("tool_result", to_text(state.get("output")) or to_text(state.get("error")), name)
        elif kind == "step_finish" and part.get("reason") != "tool-calls":
            yield TranscriptEntry("result", self._last)
        elif kind == "error":
            error = to_object(event.get("error"))
            yield TranscriptEntry(
                "error", to_text(to_object(error.get("data")).get("message") or error.get("name"))
            )
