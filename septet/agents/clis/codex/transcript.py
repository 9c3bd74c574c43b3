"""codex's stream as people read it."""

from collections.abc import Iterator
from typing import Any, Final

from septet.agents.outcomes.transcript import NOT_SAID, EventTranscript, TranscriptEntry, to_object, to_text

_SPEECH: Final = frozenset({"agent_message", "reasoning", "error"})
_BOOKKEEPING: Final = frozenset({"id", "type", "status"})


class CodexTranscript(EventTranscript):
    """Its items as they begin and end; the result is the last message of a turn that was completed."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        super().__init__()
        self._running: set[str] = set()

    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the entries of an event."""
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
        arguments = {name: value for name, value in item.items() if name not in _BOOKKEEPING}
    return TranscriptEntry("tool_call", to_text(arguments), to_text(item.get("type")))


def _output(item: dict[str, Any]) -> str:
    code = item.get("exit_code")
    output = to_text(item.get("aggregated_output") or item.get("result") or item.get("error")).rstrip()
    end = f"exit code {code}" if code not in (None, 0) else to_text(item.get("status"))
    return f"{output}\n{end}" if output and code not in (None, 0) else output or end
