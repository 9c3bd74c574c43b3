"""copilot's stream as people read it: what is ephemeral repeats what an event of its own says later."""

from collections.abc import Iterator
from typing import Any

from septet.agents.outcomes.transcript import EventTranscript, TranscriptEntry, to_object, to_text


class CopilotTranscript(EventTranscript):
    """Messages, tools, errors; the result is the last message that called no tool."""

    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the entries of an event."""
        kind, data = event.get("type"), to_object(event.get("data"))
        if kind == "assistant.message":
            words = to_text(data.get("content"))
            self._last = "" if data.get("toolRequests") else words
            yield TranscriptEntry("text", words)
        elif kind == "tool.execution_start":
            yield self.begin_call(data.get("toolCallId"), data.get("toolName"), data.get("arguments"))
        elif kind == "tool.execution_complete":
            error = data.get("error")
            output = to_object(data.get("result")).get("content") or to_object(error).get("message") or error
            yield self.end_call(data.get("toolCallId"), output)
        elif kind == "model.call_failure":
            yield TranscriptEntry("error", to_text(data.get("errorMessage")))
        elif kind == "session.error":
            yield TranscriptEntry("error", to_text(data.get("message")))
        elif kind == "abort":
            yield TranscriptEntry("error", f"The agent was interrupted: {to_text(data.get('reason'))}.")
        elif kind == "result" and event.get("exitCode") == 0:
            yield TranscriptEntry("result", self._last)
