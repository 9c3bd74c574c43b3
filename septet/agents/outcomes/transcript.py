"""What an agent said and did, in one readable form for all CLIs, while it happens and afterwards."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from septet.agents.outcomes.stream import EventReader
from septet.agents.outcomes.transcript_tools import familiar

TranscriptKind = Literal["text", "tool_call", "tool_result", "result", "error"]
"""The model's words; what it asked of a tool; what came back; the run's final text; what went wrong."""

NOT_SAID: Final = "The agent reported a failure without a reason."


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One thing that was said or done."""

    kind: TranscriptKind
    text: str
    """Of a call its argument, as JSON where it is no string."""
    tool: str = ""
    """The tool, of a call and its result, by the name that claude has for it."""


class Transcript(Protocol):
    """The reader of one run's stream, for people."""

    def feed(self, chunk: bytes) -> list[TranscriptEntry]:
        """Read the next bytes, cut anywhere, and return what they say."""

    def finish(self) -> list[TranscriptEntry]:
        """Return what is left once the stream is over."""


class EventTranscript(ABC):
    """A transcript of JSON lines: a dialect says what each event tells."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._new: list[TranscriptEntry] = []
        self._spoke = False
        self._last = ""
        self._tools: dict[str, str] = {}
        self._reader = EventReader(dict[str, Any], self._take, lambda event: isinstance(event.get("type"), str))

    @abstractmethod
    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield what an event tells; nothing for one that only keeps books."""

    def begin_call(self, call_id: object, tool: object, arguments: object) -> TranscriptEntry:
        """Return what was asked of a tool, whose name is known by the call's id from then on."""
        name = self._tools[to_text(call_id)] = to_text(tool)
        return TranscriptEntry("tool_call", to_text(arguments), name)

    def end_call(self, call_id: object, output: object) -> TranscriptEntry:
        """Return what came back from the tool of a call."""
        return TranscriptEntry("tool_result", to_text(output), self._tools.pop(to_text(call_id), ""))

    def rest(self) -> Iterator[TranscriptEntry]:
        """Yield what was held back until the end."""
        return iter(())

    def feed(self, chunk: bytes) -> list[TranscriptEntry]:
        """Read the next bytes, cut anywhere, and return what they say."""
        self._reader.feed(chunk)
        return self._take_new()

    def finish(self) -> list[TranscriptEntry]:
        """Return what is left once the stream is over; a stream that was one document is told as that document."""
        document = self._reader.finish() or ()
        for event in () if self._spoke else document:
            self._take(event)
        self._new += self.rest()
        return self._take_new()

    def _take(self, event: dict[str, Any]) -> None:
        self._spoke = True
        told = (entry for entry in self.tell(event) if entry.text or entry.tool)
        self._new += (each for entry in told for each in familiar(entry))

    def _take_new(self) -> list[TranscriptEntry]:
        new, self._new = self._new, []
        return new


def to_text(value: object) -> str:
    """Return a value as people read it: a string as it is, a list of texts joined, the rest as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list):
        texts = [
            block["text"] for block in value if isinstance(block, dict) and isinstance(block.get("text"), str)
        ]
        if texts and len(texts) == len(value):
            return "\n".join(texts)
    return json.dumps(value, ensure_ascii=False)


def to_object(value: object) -> dict[str, Any]:
    """Return an object as it is, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}
