"""gemini's stream as people read it."""

from collections.abc import Iterator
from typing import Any

from septet.agents.outcomes.transcript import NOT_SAID, EventTranscript, TranscriptEntry, to_object, to_text


class GeminiTranscript(EventTranscript):
    """Its words come in pieces, which are held until something else follows; the result is what it said last."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        super().__init__()
        self._pieces: list[str] = []

    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the entries of an event."""
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
        """Yield the words that were held."""
        if self._pieces:
            self._last, self._pieces = "".join(self._pieces), []
            yield TranscriptEntry("text", self._last)

    def _result(self, event: dict[str, Any]) -> TranscriptEntry:
        error = to_object(event.get("error"))
        if error or event.get("status") == "error":
            return TranscriptEntry("error", to_text(error.get("message")) or NOT_SAID)
        return TranscriptEntry("result", self._last or to_text(event.get("response")))
