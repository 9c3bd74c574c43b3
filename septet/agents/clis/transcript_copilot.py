"""copilot's stream as people read it: what is ephemeral repeats what an event of its own says later."""

from collections.abc import Iterator
from typing import Any

from septet.agents.clis.transcript import EventTranscript, TranscriptEntry, shown, table


class CopilotTranscript(EventTranscript):
    """Messages, tools, errors; the result is the last message that asked for no tool."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        super().__init__()
        self._tools: dict[str, str] = {}
        self._last = ""

    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield what an event tells."""
        kind, data = event.get("type"), table(event.get("data"))
        if kind == "assistant.message":
            words = shown(data.get("content"))
            self._last = "" if data.get("toolRequests") else words
            yield TranscriptEntry("text", words)
        elif kind == "tool.execution_start":
            name = shown(data.get("toolName"))
            self._tools[shown(data.get("toolCallId"))] = name
            yield TranscriptEntry("tool_call", shown(data.get("arguments")), name)
        elif kind == "tool.execution_complete":
            error = data.get("error")
            output = table(data.get("result")).get("content") or table(error).get("message") or error
            yield TranscriptEntry("tool_result", shown(output), self._tools.pop(shown(data.get("toolCallId")), ""))
        elif kind == "model.call_failure":
            yield TranscriptEntry("error", shown(data.get("errorMessage")))
        elif kind == "session.error":
            yield TranscriptEntry("error", shown(data.get("message")))
        elif kind == "abort":
            yield TranscriptEntry("error", f"The agent was interrupted: {shown(data.get('reason'))}.")
        elif kind == "result" and event.get("exitCode") == 0:
            yield TranscriptEntry("result", self._last)
