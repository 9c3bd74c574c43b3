"""Read gemini's stream, and make the outcome and the transcript."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from septet.agents.outcomes.line_stream import NOBODY_ANSWERED, LineEvent, LineStream, api_error
from septet.agents.outcomes.outcome import NO_USAGE, Ending, ExitRecord
from septet.agents.outcomes.stream import count, read_field, text_of
from septet.agents.outcomes.transcript import NOT_SAID, EventTranscript, TranscriptEntry, to_object, to_text
from septet.contracts.facts import Usage

_ATTEMPT: Final = re.compile(r"^Attempt \d+ failed(?: with status (\d{3}))?.*$", re.MULTILINE)
_NOT_OFFERED: Final = frozenset({"tool_not_registered", "policy_violation"})
"""The errors of a call to a tool that the mode withholds or, in the mode with all tools, that does not exist."""
_LOGIN_NOT_CHOSEN: Final = "Invalid auth method selected"
_CHOOSE_LOGIN: Final = (
    'Write security.auth.selectedType "gemini-api-key" into ~/.gemini/settings.json, then run `septet retry`.'
)
"""The remedy for a refused login: if GOOGLE_GEMINI_BASE_URL holds an address, the CLI chooses the login
`gateway`, and then refuses this login."""
_EVENTS: Final = ("init", "message", "tool_use", "tool_result", "error", "result")
_TURNS_REMEDY: Final = "Allow more turns (`model.maxSessionTurns` in its settings), then run `septet retry`."
_OWN_ERRORS: Final[Mapping[str, Ending]] = {
    "FatalTurnLimitedError": Ending("limit", "turns", remedy=_TURNS_REMEDY),
    "FatalAuthenticationError": api_error(401, ""),
    "FatalCancellationError": Ending("crashed", "interrupted"),
    **dict.fromkeys(
        ("FatalConfigError", "FatalInputError", "FatalSandboxError"),
        Ending("crashed", "refused", remedy="Fix what it reports, then run `septet retry`."),
    ),
}
"""The endings of the CLI's own refusals, by the type of an error."""
_NO_KEY: Final = 41
_TURN_LIMIT: Final = 53
_INTERRUPTED: Final = 130
_LOST_HIGH_BITS: Final = range(400 & 255, 256)
"""Exit codes from an HTTP status, of which the system keeps eight bits: 401 arrives as 145."""


class _Error(msgspec.Struct, gc=False):
    type: Any = None
    message: Any = None
    code: Any = None


class _Event(LineEvent, gc=False):
    session_id: Any = None
    model: Any = None
    role: Any = None
    content: Any = None
    tool_name: Any = None
    tool_id: Any = None
    status: Any = None
    severity: Any = None
    message: Any = None
    error: _Error | None = None
    stats: msgspec.Raw = msgspec.Raw()
    response: Any = None
    """The answer, if the output is one JSON object."""


class _Stats(msgspec.Struct, gc=False):
    total_tokens: Any = 0
    input_tokens: Any = 0
    output_tokens: Any = 0
    cached: Any = 0
    models: dict[str, "_Stats"] = {}


class _ModelTokens(msgspec.Struct, frozen=True, gc=False):
    prompt: Any = 0
    candidates: Any = 0
    total: Any = 0
    cached: Any = 0


class _ModelApi(msgspec.Struct, frozen=True, gc=False):
    requests: Any = msgspec.field(name="totalRequests", default=0)


class _Model(msgspec.Struct, gc=False):
    api: _ModelApi = _ModelApi()
    tokens: _ModelTokens = _ModelTokens()


class _Calls(msgspec.Struct, frozen=True, gc=False):
    total: Any = msgspec.field(name="totalCalls", default=0)


class _WholeStats(msgspec.Struct, gc=False):
    """The statistics in an output that is one JSON object."""

    models: dict[str, _Model] = {}
    tools: _Calls = _Calls()


class GeminiStream(LineStream[_Event]):
    """Reads gemini's stream; the answer is the text after the last tool result. Only stderr shows retries."""

    event_type = _Event
    unknown_session = re.compile(r"Invalid session identifier|No previous sessions found")

    def begin(self) -> None:
        """Forget all facts, because the stream is read from its start."""
        super().begin()
        self._tools: dict[str, str] = {}
        self._in_turn = False
        self._said_wrong = ""
        self._used = msgspec.Raw()
        self._used_by_models = NO_USAGE

    @property
    def usage(self) -> Usage:
        """The usage of the run, from the statistics that the result has."""
        return self._used_by_models.plus(_usage(read_field(self._used, _stats) or _Stats()))

    def is_own(self, event: _Event) -> bool:
        """Return whether an object is an event of gemini, by its type and, for a result, by its status."""
        return event.type in _EVENTS and (event.type != "result" or isinstance(event.status, str))

    def take(self, event: _Event) -> None:
        """Add what one event reports to the facts of the run."""
        facts, kind = self.facts, event.type
        if kind == "message" and event.role == "assistant":
            self._open_turn()
            facts.say(event.content)
        elif kind == "tool_use":
            self._open_turn()
            facts.tool_calls += 1
            facts.spoke_last = False
            self._tools[str(event.tool_id)] = str(event.tool_name)
        elif kind == "tool_result":
            self._in_turn = False
            facts.hush()
            tool = self._tools.pop(str(event.tool_id), "")
            if event.error is not None and str(event.error.type) in _NOT_OFFERED:
                facts.deny(tool)
        elif kind == "init":
            facts.session_id, facts.model = text_of(event.session_id), text_of(event.model)
        elif kind == "error":
            self._take_error(event)
        elif kind == "result":
            self._take_result(event)
        elif kind is None and (event.response is not None or event.error is not None):
            self._take_whole(event)

    def take_stderr(self, stderr: str, end: ExitRecord) -> None:
        """Count the retries that stderr reports, and read an error that is missing in stdout."""
        facts = self.facts
        for attempt in _ATTEMPT.finditer(stderr):
            facts.api_retries += 1
            facts.trying_again = api_error(int(attempt[1]) if attempt[1] else NOBODY_ANSWERED, attempt[0])
        start = stderr.rfind("\n{\n")
        if not self.spoke and start >= 0:
            whole = read_field(msgspec.Raw(stderr[start:].encode(errors="replace")), _event)
            if whole is not None:
                self._take_whole(whole)
        if facts.failure is None and not facts.finished and end.cause == "exited":
            self._take_exit_code(end.exit_code or 0, stderr)

    def _open_turn(self) -> None:
        """Count a turn of the model, unless a turn is open; a tool's result ends a turn."""
        if not self._in_turn:
            self.facts.turns += 1
            self._in_turn = True

    def _take_error(self, event: _Event) -> None:
        words = str(event.message)
        if "Loop detected" in words:
            remedy = "Give it smaller work, or say in the issue how to do it, then run `septet retry`."
            self.facts.failure = Ending("limit", "loop", words, remedy)
        if event.severity == "warning":
            self.facts.warn(words)
        else:
            self._said_wrong = words

    def _take_result(self, event: _Event) -> None:
        facts = self.facts
        facts.results += 1
        self._used = event.stats
        models = (read_field(event.stats, _stats) or _Stats()).models
        if used := [name for name, stats in models.items() if count(stats.total_tokens)]:
            facts.model = max(used, key=lambda name: count(models[name].total_tokens))
        if event.status == "success":
            facts.finished = True
        elif event.error is not None:
            facts.failure = _failure(event.error)
        elif "empty response" in self._said_wrong:
            facts.failure = Ending("no_result", "empty", self._said_wrong)
        else:
            facts.failure = api_error(None, self._said_wrong or NOT_SAID)

    def _take_whole(self, event: _Event) -> None:
        """Read the facts from an output that is one JSON object."""
        facts = self.facts
        facts.session_id = text_of(event.session_id)
        if event.error is not None:
            facts.failure = _failure(event.error)
            return
        facts.finished = True
        facts.say(event.response)
        stats = read_field(event.stats, _whole_stats) or _WholeStats()
        facts.tool_calls = count(stats.tools.total)
        for name, model in stats.models.items():
            facts.model = facts.model or name
            facts.turns += count(model.api.requests)
            tokens = model.tokens
            figures = _Stats(tokens.total, tokens.prompt, tokens.candidates, tokens.cached)
            self._used_by_models = self._used_by_models.plus(_usage(figures))

    def _take_exit_code(self, code: int, stderr: str) -> None:
        words = stderr.strip()[-600:]
        if code == _NO_KEY:
            ending = api_error(401, words)
            self.facts.failure = replace(ending, remedy=_CHOOSE_LOGIN) if _LOGIN_NOT_CHOSEN in words else ending
        elif code == _TURN_LIMIT:
            message = words or "The agent reached its turn limit."
            self.facts.failure = Ending("limit", "turns", message, _TURNS_REMEDY)
        elif code == _INTERRUPTED:
            self.facts.interrupted = f"exit code {code}"
        elif code in _LOST_HIGH_BITS:
            self.facts.failure = api_error(code + 256, words)


_event: Final = msgspec.json.Decoder(_Event)
_stats: Final = msgspec.json.Decoder(_Stats)
_whole_stats: Final = msgspec.json.Decoder(_WholeStats)


def _failure(error: _Error) -> Ending:
    words = str(error.message)
    if str(error.type) in _OWN_ERRORS:
        return replace(_OWN_ERRORS[str(error.type)], message=words)
    return api_error(error.code if isinstance(error.code, int) else None, words)


def _usage(stats: _Stats) -> Usage:
    """Return gemini's counts as `Usage`; gemini's input includes cached tokens, its output lacks reasoning."""
    prompt, answer, cached = count(stats.input_tokens), count(stats.output_tokens), count(stats.cached)
    reasoning = max(count(stats.total_tokens) - prompt - answer, 0)
    return Usage(
        input_tokens=max(prompt - cached, 0),
        output_tokens=answer + reasoning,
        cache_read_tokens=cached,
        reasoning_tokens=reasoning,
    )


class GeminiTranscript(EventTranscript):
    """Turns gemini's stream into entries; joins the pieces of each text. The last text is the result."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[str] = []

    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the transcript's entries for an event."""
        kind = event.get("type")
        if kind == "message" and event.get("role") == "assistant":
            self._pieces.append(to_text(event.get("content")))
            return
        yield from self.rest()
        if kind == "tool_use":
            yield self.begin_call(event.get("tool_id"), event.get("tool_name"), event.get("parameters"))
        elif kind == "tool_result":
            self._last = ""
            output = to_text(event.get("output")) or to_text(to_object(event.get("error")).get("message"))
            yield self.end_call(event.get("tool_id"), output)
        elif kind == "error":
            yield TranscriptEntry("error", to_text(event.get("message")))
        elif kind == "result" or (kind is None and ("response" in event or "error" in event)):
            yield self._result(event)

    def rest(self) -> Iterator[TranscriptEntry]:
        """Yield an entry with the joined pieces of a text, if there are any."""
        if self._pieces:
            self._last, self._pieces = "".join(self._pieces), []
            yield TranscriptEntry("text", self._last)

    def _result(self, event: dict[str, Any]) -> TranscriptEntry:
        error = to_object(event.get("error"))
        if error or event.get("status") == "error":
            return TranscriptEntry("error", to_text(error.get("message")) or NOT_SAID)
        return TranscriptEntry("result", self._last or to_text(event.get("response")))
