"""claude's stream as people read it; and the few events that older wrappers print."""

from collections.abc import Iterator
from typing import Any

from septet.agents.outcomes.transcript import NOT_SAID, EventTranscript, TranscriptEntry, to_object, to_text


class ClaudeTranscript(EventTranscript):
    """Blocks of messages, results of tools by the call they answer, the result, and what the API refused."""

    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the entries of an event."""
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
