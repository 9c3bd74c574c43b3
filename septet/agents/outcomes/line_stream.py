"""Read a CLI's stream of JSON lines: collect the facts of the run, and make the outcome."""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, TypeVar

import msgspec

from septet.agents.outcomes import api_errors, endings
from septet.agents.outcomes.endings import OTHER_DIALECT
from septet.agents.outcomes.outcome import NO_USAGE, Ending, ExitRecord, Outcome, StreamProgress
from septet.agents.outcomes.stream import DETAIL_LIMIT, EventReader
from septet.contracts.facts import Usage
from septet.system.masking import mask

NOBODY_ANSWERED: Final = 408
"""The status for a request that reached no server; servers use the same status for a time-out."""

_TEXT_LIMIT: Final = 4 * 1024 * 1024
"""The longest text, in characters; of a longer text the end is kept."""
_PIECES_KEPT: Final = 16
_NOTES_KEPT: Final = 20
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


class LineEvent(msgspec.Struct, gc=False):
    """An event, with only the field that every event has; a CLI's own type adds the other fields to read."""

    type: Any = None


E = TypeVar("E", bound=LineEvent)


@dataclass(slots=True)
class Facts:
    """What a run's stream has shown so far."""

    session_id: str | None = None
    model: str | None = None
    turns: int = 0
    tool_calls: int = 0
    api_retries: int = 0
    results: int = 0
    finished: bool = False
    """Whether the CLI reported its own end, so that the last text is the answer."""
    failure: Ending | None = None
    trying_again: Ending | None = None
    """The API error after which the CLI retries; `None` after the API has answered."""
    interrupted: str = ""
    denials: list[str] = field(default_factory=list)
    lacked: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    left_out: int = 0
    """The number of characters of the last text that were not kept."""
    pieces: list[str] = field(default_factory=list)
    """The parts of the last message, if the CLI prints messages in parts."""
    spoke_last: bool = False
    """Whether no tool call followed the last text."""
    _texts: list[str] = field(default_factory=list)
    _text_length: int = 0

    @property
    def text(self) -> str:
        """The model's last text; of a text with more than 4 Mi characters, only the end."""
        return "".join(self._texts)[-_TEXT_LIMIT:]

    def say(self, text: object, *, anew: bool = False) -> None:
        """Add `text` to the model's last text, or begin a new text if `anew`."""
        if anew:
            self.hush()
        if isinstance(text, str):
            self.spoke_last = True
            self._texts.append(text)
            self._text_length += len(text)
        if self._text_length > 2 * _TEXT_LIMIT:
            self.keep_end()

    def keep_piece(self, text: object) -> None:
        """Keep a short part of the model's last message, unless 16 parts are kept already."""
        if isinstance(text, str) and len(self.pieces) < _PIECES_KEPT and len(text) <= _TEXT_LIMIT // _PIECES_KEPT:
            self.pieces.append(text)

    def keep_end(self) -> None:
        """Shorten the model's last text to its end."""
        kept = self.text
        self.left_out += self._text_length - len(kept)
        self._texts, self._text_length = [kept], len(kept)

    def hush(self) -> None:
        """Forget the model's last text, because a tool call followed."""
        self._texts, self._text_length, self.left_out, self.spoke_last = [], 0, 0, False

    def deny(self, tool: str) -> None:
        """Record that the CLI denied this tool to the agent."""
        if len(self.denials) < _NOTES_KEPT:
            self.denials.append(tool)

    def lack(self, words: object, sentence: re.Pattern[str]) -> None:
        """Record a tool that the CLI does not have, if `words` match the CLI's `sentence` about a missing tool."""
        found = sentence.match(words) if isinstance(words, str) else None
        if found is not None and len(self.lacked) < _NOTES_KEPT:
            self.lacked.append(found[1][:DETAIL_LIMIT])

    def warn(self, warning: str) -> None:
        """Record a warning, with keys masked, for the run's outcome."""
        if len(self.warnings) < _NOTES_KEPT:
            self.warnings.append(mask(warning)[:300])


class LineStream(ABC, Generic[E]):
    """Reads the stream of one run; a subclass for each CLI turns events into facts."""

    event_type: type[E]
    """The type with the fields to read from an event."""
    unknown_session: ClassVar[re.Pattern[str]]
    """The pattern of the CLI's refusal to resume an unknown session."""

    def __init__(self) -> None:
        self._reader = EventReader(self.event_type, self.is_own)
        self.begin()

    def begin(self) -> None:
        """Forget all facts, to read the stream from its start."""
        self.facts = Facts()

    @property
    def usage(self) -> Usage:
        """The usage that the stream has reported so far."""
        return NO_USAGE

    @property
    def context_tokens(self) -> int:
        """The session's tokens, estimated as a turn's average input and all output; a subclass may be exact."""
        used = self.usage
        input_tokens = used.input_tokens + used.cache_read_tokens + used.cache_write_tokens
        return input_tokens // max(self.facts.turns, 1) + used.output_tokens

    @abstractmethod
    def take(self, event: E) -> None:
        """Add to the facts what one event reports."""

    @abstractmethod
    def is_own(self, event: E) -> bool:
        """Return whether an object on the stream is an event of this CLI, and not a piece of a larger event."""

    def take_stderr(self, stderr: str, end: ExitRecord) -> None:
        """Add the last lines of stderr as warnings, if the stream had an event."""
        del end  # some dialects read the exit code
        if self.spoke:
            for line in endings.warnings_in(stderr):
                self.facts.warn(line)

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes, which may be cut anywhere."""
        take = self.take
        for event in self._reader.feed(chunk):
            take(event)

    @property
    def spoke(self) -> bool:
        """Whether the stream had an event."""
        return self._reader.last is not None

    @property
    def progress(self) -> StreamProgress:
        """The progress of the run, as far as its stream was read."""
        facts, last, used = self.facts, self._reader.last, self.usage
        return StreamProgress(
            session_id=facts.session_id,
            last_event=last.type if last is not None and isinstance(last.type, str) else "",
            turns=facts.turns,
            tokens=used.tokens,
            cost_usd=used.cost_usd or 0.0,
            results=facts.results,
        )

    def outcome(self, end: ExitRecord, stderr: str) -> Outcome:
        """Return the outcome of the run, after the whole stream was fed."""
        words = _COLOURS.sub("", stderr)
        rest, document = self._reader.finish()
        if document is not None:
            self.begin()
        for event in rest if document is None else document:
            self.take(event)
        self.take_stderr(words, end)
        facts, ending = self.facts, self._ending(end, words)
        facts.keep_end()
        has_answer = facts.finished and ending.ended in {"ok", "denied"}
        outcome = Outcome(
            ended=ending.ended,
            text=facts.text if has_answer else None,
            pieces=tuple(facts.pieces) if has_answer and len(facts.pieces) > 1 else (),
            left_out=facts.left_out if has_answer else 0,
            session_id=facts.session_id,
            model=facts.model,
            usage=self.usage,
            context_tokens=self.context_tokens,
            turns=facts.turns,
            tool_calls=facts.tool_calls,
            api_retries=facts.api_retries,
            denials=tuple(facts.denials),
            warnings=tuple(facts.warnings),
            skipped_lines=self._reader.skipped_lines,
        )
        return endings.with_ending(outcome, ending, end, facts.lacked)

    def _ending(self, end: ExitRecord, stderr: str) -> Ending:
        facts, last = self.facts, self._reader.last
        ending = None if endings.is_cancelled(end) else facts.failure or _ending_of(facts, end)
        if ending is not None:
            return ending
        words = stderr.strip() or self._reader.words
        is_told = facts.session_id or facts.turns or facts.tool_calls
        if last is not None and last.type is None and not is_told and (end.cause, end.exit_code) == ("exited", 0):
            return Ending("crashed", OTHER_DIALECT, "The agent printed events that are those of another version.")
        return endings.without_result(end, words, spoke=self.spoke, unknown_session=self.unknown_session)


def api_error(status: int | None, words: str) -> Ending:
    """Return the ending for an error of the model API."""
    return endings.api_ending(api_errors.classify(status, words), words)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without blank lines."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _ending_of(facts: Facts, end: ExitRecord) -> Ending | None:
    """Return the ending of a run whose CLI reported no failure; `None` if the stream does not show the ending."""
    if facts.finished and endings.leaves_result_standing(end):
        return endings.with_result(facts.text, facts.denials)
    if facts.denials and end.exit_code == 0:
        return endings.denial_ending(facts.denials)
    if facts.interrupted and end.cause == "exited":
        return Ending("crashed", "interrupted", f"The agent was interrupted: {facts.interrupted}.")
    if end.cause == "exited" and end.exit_code == 0 and facts.spoke_last and facts.text.strip():
        facts.finished = True  # the CLI has ended well, and its last text is the answer
        return Ending("ok")
    return facts.trying_again if end.cause in {"wall_limit", "idle_limit"} else None
