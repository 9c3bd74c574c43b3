"""Read codex's stream, and make the outcome and the transcript."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from septet.agents.outcomes.line_stream import LineEvent, LineStream, api_error, lines_of
from septet.agents.outcomes.outcome import NO_USAGE, ExitRecord
from septet.agents.outcomes.stream import count, read_field, text_of
from septet.agents.outcomes.transcript import NOT_SAID, EventTranscript, TranscriptEntry, to_object, to_text
from septet.contracts.facts import Usage

_WARNING: Final = re.compile(r"^WARNING:|\b(WARN|ERROR)\b")
_REJECTED: Final = re.compile(r"ERROR codex_core::tools\S{0,100}: error=(patch|.{0,1000}?) ?rejected")
_SPEECH: Final = frozenset({"agent_message", "reasoning", "error"})
"""The types of items that are no tool calls; an `error` item is a warning, for example about an unknown model."""


class _Item(msgspec.Struct, gc=False):
    id: Any = None
    type: Any = None
    text: Any = None
    message: Any = None
    status: Any = None


class _Tokens(msgspec.Struct, gc=False):
    input_tokens: Any = 0
    cached_input_tokens: Any = 0
    cache_write_input_tokens: Any = 0
    output_tokens: Any = 0
    reasoning_output_tokens: Any = 0


class _Error(msgspec.Struct, gc=False):
    message: Any = None


class _Event(LineEvent, gc=False):
    thread_id: Any = None
    item: _Item | None = None
    usage: msgspec.Raw = msgspec.Raw()
    message: Any = None
    error: _Error | None = None


_tokens: Final = msgspec.json.Decoder(_Tokens)


class CodexStream(LineStream[_Event]):
    """Reads codex's stream, which names no model and no cost; the answer is a completed turn's last message."""

    event_type = _Event
    unknown_session = re.compile(r"no rollout found|thread/resume failed")

    def __init__(self, before: Usage = NO_USAGE) -> None:
        """Take the usage of earlier runs of the session, which codex calls a thread."""
        super().__init__()
        self._before = before

    def begin(self) -> None:
        """Forget all facts, because the stream is read from its start."""
        super().begin()
        self._running: set[str] = set()
        self._in_turn = False
        self._spoken_in_turn = False
        self._message: Any = None
        self._used = msgspec.Raw()

    @property
    def usage(self) -> Usage:
        """The usage of this run: the last turn's report for the whole thread, minus the usage of earlier runs."""
        return _difference(read_field(self._used, _tokens) or _Tokens(), self._before)

    def is_own(self, event: _Event) -> bool:
        """Return whether an object is an event, not an item: the type of an event has a dot, or is `error`."""
        return "." in str(event.type) or event.type == "error"

    def take(self, event: _Event) -> None:
        """Add what one event reports to the facts of the run."""
        item, kind = event.item, event.type
        if item is None:
            self._take_event(event)
        elif kind == "item.completed":
            if item.type == "agent_message":
                self._take_message(item)
            else:
                self._take_completed(item)
        elif kind == "item.started":
            self._take_started(item)
        else:
            self._take_event(event)

    def take_stderr(self, stderr: str, end: ExitRecord) -> None:
        """Add the warnings and the rejected tools that only stderr reports."""
        del end  # the exit code adds nothing
        for line in lines_of(stderr):
            if _WARNING.search(line):
                self.facts.warn(line)
            rejected = _REJECTED.search(line)
            if rejected is not None:
                self.facts.deny("apply_patch" if rejected[1] == "patch" else "exec_command")

    def _take_event(self, event: _Event) -> None:
        facts, kind = self.facts, event.type
        if kind == "thread.started":
            facts.session_id = text_of(event.thread_id)
        elif kind == "error":
            self._take_error(str(event.message))
        elif kind == "turn.completed":
            facts.finished, facts.failure = True, None
            facts.results += 1
            facts.say(self._message, anew=True)
            self._used = event.usage
        elif kind == "turn.failed":
            facts.failure = api_error(None, str(event.error.message if event.error is not None else None))

    def _take_message(self, item: _Item) -> None:
        """Add a message: to the open assistant turn if that has no message yet, otherwise to a new one."""
        facts = self.facts
        facts.trying_again = None
        if self._spoken_in_turn or not self._in_turn:
            facts.turns += 1
        self._in_turn = self._spoken_in_turn = True
        self._message = item.text

    def _take_started(self, item: _Item) -> None:
        """Add a tool call: to the open assistant turn, or to a new one if no turn is open."""
        if str(item.type) not in _SPEECH:
            if not self._in_turn:
                self.facts.turns += 1
                self._in_turn, self._spoken_in_turn = True, False
            self.facts.tool_calls += 1
            self._running.add(str(item.id))

    def _take_completed(self, item: _Item) -> None:
        kind = item.type
        if kind == "error":
            self.facts.warn(str(item.message))
            return
        self.facts.trying_again = None
        if kind != "reasoning":
            item_id = str(item.id)
            if item_id not in self._running:
                self._take_started(item)
            self._running.discard(item_id)
            self._in_turn = False
            if kind == "file_change" and str(item.status) in {"failed", "declined"}:
                self.facts.deny("apply_patch")

    def _take_error(self, words: str) -> None:
        if words.startswith("Reconnecting"):
            self.facts.api_retries += 1
            self.facts.trying_again = api_error(None, words)
        else:
            self.facts.failure = api_error(None, words)


def _difference(thread: _Tokens, before: Usage) -> Usage:
    """Return `thread` minus `before`; the result's input tokens, unlike codex's, do not include cached tokens."""
    cache_read, cache_written = count(thread.cached_input_tokens), count(thread.cache_write_input_tokens)
    uncached = count(thread.input_tokens) - cache_read - cache_written
    return Usage(
        input_tokens=max(uncached - before.input_tokens, 0),
        output_tokens=max(count(thread.output_tokens) - before.output_tokens, 0),
        cache_read_tokens=max(cache_read - before.cache_read_tokens, 0),
        cache_write_tokens=max(cache_written - before.cache_write_tokens, 0),
        reasoning_tokens=max(count(thread.reasoning_output_tokens) - before.reasoning_tokens, 0),
    )


class CodexTranscript(EventTranscript):
    """Turns codex's items into entries as the items begin and end; the result is the last message."""

    def __init__(self) -> None:
        super().__init__()
        self._running: set[str] = set()

    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the transcript's entries for an event."""
        kind, item = event.get("type"), to_object(event.get("item"))
        if kind == "item.started" and item.get("type") not in _SPEECH:
            self._running.add(to_text(item.get("id")))
            yield _call(item)
        elif kind == "item.completed":
            yield from self._take_item(item)
        elif kind == "turn.completed":
            yield TranscriptEntry("result", self._last)
        elif kind == "error":
            yield TranscriptEntry("error", to_text(event.get("message")))
        elif kind == "turn.failed":
            yield TranscriptEntry("error", to_text(to_object(event.get("error")).get("message")) or NOT_SAID)

    def _take_item(self, item: dict[str, Any]) -> Iterator[TranscriptEntry]:
        what = item.get("type")
        if what == "agent_message":
            self._last = to_text(item.get("text"))
            yield TranscriptEntry("text", self._last)
        elif what == "error":
            yield TranscriptEntry("error", to_text(item.get("message")))
        elif what != "reasoning":
            number = to_text(item.get("id"))
            if number not in self._running:
                yield _call(item)
            self._running.discard(number)
            yield TranscriptEntry("tool_result", _output(item), to_text(what))


def _call(item: dict[str, Any]) -> TranscriptEntry:
    arguments = item.get("command") or item.get("changes")
    if arguments is None:
        arguments = {name: value for name, value in item.items() if name not in {"id", "type", "status"}}
    return TranscriptEntry("tool_call", to_text(arguments), to_text(item.get("type")))


def _output(item: dict[str, Any]) -> str:
    code = item.get("exit_code")
    output = to_text(item.get("aggregated_output") or item.get("result") or item.get("error")).rstrip()
    end = f"exit code {code}" if code not in (None, 0) else to_text(item.get("status"))
    return f"{output}\n{end}" if output and code not in (None, 0) else output or end
