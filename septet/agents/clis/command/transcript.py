"""What a configured program prints, as people read it: lines of text, or events."""

from septet.agents.clis.claude.transcript import ClaudeTranscript
from septet.agents.outcomes.stream import LINE_LIMIT_BYTES, is_event
from septet.agents.outcomes.transcript import TranscriptEntry


class CommandTranscript:
    """Text by the line; from a first line on that is an event, events as claude prints them."""

    def __init__(self) -> None:
        """Begin with nothing printed."""
        self._events: ClaudeTranscript | None = None
        self._text = bytearray()
        self._began = False

    def feed(self, chunk: bytes) -> list[TranscriptEntry]:
        """Read the next bytes, cut anywhere, and return what they say."""
        if self._events is not None:
            return self._events.feed(chunk)
        self._text += chunk
        whole, newline, rest = bytes(self._text).rpartition(b"\n")
        if not newline and len(rest) < LINE_LIMIT_BYTES:
            return []
        return self._take_text(whole + newline or rest, rest if newline else b"")

    def finish(self) -> list[TranscriptEntry]:
        """Return what is left once the stream is over."""
        entries = self._take_text(bytes(self._text), b"") if self._events is None else []
        return entries + (self._events.finish() if self._events is not None else [])

    def _take_text(self, lines: bytes, rest: bytes) -> list[TranscriptEntry]:
        self._text = bytearray(rest)
        if not self._began and lines.strip():
            self._began = True
            if is_event(lines.lstrip().partition(b"\n")[0]):
                self._events = ClaudeTranscript()
                self._text.clear()
                return self._events.feed(lines + rest)
        words = lines.decode("utf-8", errors="replace").strip()
        return [TranscriptEntry("text", words)] if words else []
