"""opencode's stream as people read it."""

from collections.abc import Iterator
from typing import Any

from septet.agents.outcomes.transcript import EventTranscript, TranscriptEntry, to_object, to_text


class OpenCodeTranscript(EventTranscript):
    """Parts of messages; the result is the last text of a step that asks for no tool."""

    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the entries of an event; leave out an error's server headers and body."""
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
