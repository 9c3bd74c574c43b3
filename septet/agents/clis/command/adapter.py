"""The adapter of any program that reads a prompt on stdin and prints its answer; settings name the program.

`SEPTET_COMMAND` is the command line, split as a shell would split it, but no shell runs. `SEPTET_COMMAND_ENV`
names further variables for the program, separated by commas; a name that ends with `*` is a prefix. The output is
the answer as text. If the first line is a JSON object with a `type`, the output is read as events of claude's
stream-json; one event `{"type": "result", "result": "…"}` is enough.
"""

import re
import shlex
from dataclasses import replace
from typing import Final

from septet.agents.clis.adapter import Adapter, Invocation, Machine, Turn, select_variables
from septet.agents.clis.capabilities import Capabilities
from septet.agents.clis.claude.stream import ClaudeStream, ClaudeTranscript
from septet.agents.outcomes import api_errors, endings
from septet.agents.outcomes.outcome import NO_USAGE, Ending, ExitRecord, Outcome, StreamProgress
from septet.agents.outcomes.stream import LINE_LIMIT_BYTES, is_event
from septet.agents.outcomes.transcript import TranscriptEntry
from septet.contracts.facts import Usage
from septet.errors import AgentError
from septet.system.masking import mask


class CommandTranscript:
    """Turns a program's lines into log entries; if the first line is an event, all lines are claude's events."""

    def __init__(self) -> None:
        self._events: ClaudeTranscript | None = None
        self._text = bytearray()
        self._began = False

    def feed(self, chunk: bytes) -> list[TranscriptEntry]:
        """Read the next bytes, which may be cut anywhere, and return the entries in them."""
        if self._events is not None:
            return self._events.feed(chunk)
        self._text += chunk
        whole, newline, rest = bytes(self._text).rpartition(b"\n")
        if not newline and len(rest) < LINE_LIMIT_BYTES:
            return []
        return self._take_text(whole + newline or rest, rest if newline else b"")

    def finish(self) -> list[TranscriptEntry]:
        """Return the remaining entries after the end of the stream."""
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


COMMAND_LINE: Final = "SEPTET_COMMAND"
COMMAND_ENV: Final = "SEPTET_COMMAND_ENV"
TEXT_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""The size of the longest text, in bytes; of a longer text only the end is read."""

_CAPABILITIES: Final = Capabilities(
    tested_version="", memory_mib=400, resumes=False, resumes_after_kill=False, needs_login=False, names_files=True
)
_TOKENS: Final = re.compile(r"\b(input|output) tokens:\s*([\d,]+)", re.IGNORECASE)


class ConfiguredProgram(Adapter):
    """The adapter of the program that `SEPTET_COMMAND` configures."""

    def invocation(self, turn: Turn, host: Machine) -> Invocation:
        """Return the invocation of the configured program, which gets nothing of the turn but the prompt."""
        return Adapter.invocation(replace(self, program=_command_line(host)[0]), turn, host)

    def arguments(self, turn: Turn, host: Machine) -> list[str]:
        """Return the words that follow the program in the configured command line."""
        del turn
        return _command_line(host)[1:]

    def environment(self, turn: Turn, host: Machine) -> dict[str, str]:
        """Return the environment, with the variables that `SEPTET_COMMAND_ENV` names."""
        names = (name.strip() for name in host.env.get(COMMAND_ENV, "").split(","))
        return super().environment(turn, host) | select_variables(host.env, tuple(filter(None, names)))


def _command_line(host: Machine) -> list[str]:
    """Return the words of the configured command line, at least one word.

    Raises:
        AgentError: No program is configured, or its command line cannot be split.
    """
    try:
        words = shlex.split(host.env.get(COMMAND_LINE, ""))
    except ValueError as error:
        remedy = f"Start the worker (`septet up`) again with {COMMAND_LINE} corrected."
        raise AgentError(f"{COMMAND_LINE} cannot be split: {error}.", remedy=remedy) from error
    if not words:
        remedy = (
            f"Where the worker (`septet up`) runs, set {COMMAND_LINE} to a program that reads a prompt on stdin, "
            "with its arguments, and restart the worker."
        )
        raise AgentError("No program is configured for the agent `command`.", remedy=remedy)
    return words


class CommandStream:
    """Reads a program's output, which is text or lines of events."""

    def __init__(self) -> None:
        self._events = ClaudeStream()
        self._text = bytearray()
        self._left_out = 0
        self._has_events: bool | None = None

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes, which may be cut anywhere."""
        if self._has_events is not True:
            self._text += chunk
            if self._has_events is None:
                self._look_at_first_line()
            if len(self._text) > 2 * TEXT_LIMIT_BYTES:
                self._keep_end()
        else:
            self._events.feed(chunk)

    def _keep_end(self) -> None:
        self._left_out += max(0, len(self._text) - TEXT_LIMIT_BYTES)
        del self._text[:-TEXT_LIMIT_BYTES]

    @property
    def progress(self) -> StreamProgress:
        """The progress that the program's events report; output as text shows no progress."""
        return self._events.progress

    def outcome(self, end: ExitRecord, stderr: str) -> Outcome:
        """Return the outcome of the run; call this after the whole output was fed."""
        self._look_at_first_line(over=True)
        outcome = self._events.outcome(end, stderr) if self._has_events else self._outcome_of_text(end, stderr)
        if outcome.usage == NO_USAGE:
            outcome = replace(outcome, usage=_estimate_usage(stderr))
        return outcome

    def _look_at_first_line(self, *, over: bool = False) -> None:
        """Decide whether the output is events, by the first line that is not blank."""
        head = self._text.lstrip()
        line, newline, _ = head.partition(b"\n")
        if self._has_events is None and line and (newline or over or not line.startswith((b"{", b"\x1b"))):
            self._has_events = is_event(line)
            if self._has_events:
                self._events.feed(bytes(self._text))
                self._text.clear()

    def _outcome_of_text(self, end: ExitRecord, stderr: str) -> Outcome:
        self._keep_end()
        text = self._text.decode("utf-8", errors="replace").strip()
        ending = _ending(end, text, stderr)
        has_answer = ending.ended == "ok"
        outcome = Outcome(
            ended=ending.ended,
            text=text if has_answer else None,
            left_out=self._left_out if has_answer else 0,
            warnings=endings.warnings_in(stderr) if has_answer else (),
        )
        return endings.with_ending(outcome, ending, end)


def _ending(end: ExitRecord, text: str, stderr: str) -> Ending:
    if end.cause == "exited" and end.exit_code == 0:
        return Ending("ok") if text else Ending("no_result", "empty", "The agent gave an empty answer.")
    words = (stderr.strip() or mask(text))[-600:]
    error = api_errors.classify(None, words)
    if end.cause == "exited" and end.exit_code is not None and error.kind != "unknown":
        return endings.api_ending(error, words)
    return endings.without_result(end, words, spoke=bool(text))


def _estimate_usage(stderr: str) -> Usage:
    """Return the token counts in stderr, such as `input tokens: 123`; of each kind, the last one counts."""
    counts = {match[1].lower(): int(match[2].replace(",", "") or 0) for match in _TOKENS.finditer(stderr)}
    if not counts:
        return NO_USAGE
    return Usage(input_tokens=counts.get("input", 0), output_tokens=counts.get("output", 0), estimated=True)


COMMAND: Final = ConfiguredProgram("command", _CAPABILITIES, CommandStream, CommandTranscript, "")
ADAPTERS: Final = (COMMAND,)
