"""claude's stream as people read it; and the few events that older wrappers print."""

from collections.abc import Iterator
from typing import Any

from septet.agents.clis.transcript import NOT_SAID, EventTranscript, TranscriptEntry, shown, table


class ClaudeTranscript(EventTranscript):
    """Blocks of messages, results of tools by the call they answer, the result, and what the API refused."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        super().__init__()
        self._tools: dict[str, str] = {}

    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield what an event tells."""
        kind = event.get("type")
        if kind in {"assistant", "user"}:
            content = table(event.get("message")).get("content")
            for block in content if isinstance(content, list) else []:
                yield from self._block(kind, table(block))
        elif kind == "text":
            yield TranscriptEntry("text", shown(event.get("text")))
        elif kind == "result" or (kind is None and "result" in event):
            yield _result(event)
        elif event.get("subtype") == "api_retry":
            status, error = event.get("error_status"), shown(event.get("error"))
            yield TranscriptEntry("error", f"The model API: {error} {shown(status)}; it is asked again.")
        elif event.get("subtype") == "permission_denied":
            yield TranscriptEntry(
                "error", shown(event.get("message")) or f"Denied: {shown(event.get('tool_name'))}"
            )

    def _block(self, kind: str, block: dict[str, Any]) -> Iterator[TranscriptEntry]:
        what = block.get("type")
        if what == "text" and kind == "assistant":
            yield TranscriptEntry("text", shown(block.get("text")))
        elif what == "tool_use":
            name = shown(block.get("name"))
            self._tools[shown(block.get("id"))] = name
            yield TranscriptEntry("tool_call", shown(block.get("input")), name)
        elif what == "tool_result":
            name = self._tools.pop(shown(block.get("tool_use_id")), "")
            yield TranscriptEntry("tool_result", shown(block.get("content")), name)


def _result(event: dict[str, Any]) -> TranscriptEntry:
    errors = event.get("errors")
    words = "; ".join(map(shown, errors)) if isinstance(errors, list) else ""
    if event.get("is_error") or words:
        return TranscriptEntry("error", words or shown(event.get("result")) or NOT_SAID)
    return TranscriptEntry("result", shown(event.get("result")))
