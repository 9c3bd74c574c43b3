"""The outcome of an agent run, in one form for all CLIs."""

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

from septet.contracts.facts import Usage
from septet.system.masking import mask

_KIB: Final = 1024
_SETTING: Final = "SEPTET_ANSWER_LIMIT_KIB"
NO_USAGE: Final = Usage()

Ended = Literal["ok", "api_error", "limit", "denied", "cancelled", "crashed", "no_result"]
"""The way in which an agent run ended: with a result; at an error of the model API; at a limit; with denied tools;
on a cancel; in a crash; or without an error and without a result."""

Cause = Literal[
    "exited", "wall_limit", "idle_limit", "orphan_limit", "ended", "terminated", "not_started", "lost",
    "process_limit", "memory_limit", "socket_limit", "disk_limit", "tree_limit", "tree_size_limit", "output_limit",
]  # fmt: skip
"""The cause of the end of the agent's process: the process ended by itself, at a limit that its supervisor
enforces, on request, or with its supervisor; it never started; or nothing saw the end."""


WaitsFor = Literal["", "commands", "tasks"]
"""The work for which a CLI waits after a result: none; only commands of its shell, which may be servers that never
end; or tasks, after which the CLI continues."""

_MAY_BE_OF_SESSION: Final = frozenset({"context_length", "invalid_request", "unknown", "refusal"})


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """The supervisor's record of the end of the agent's process, in `exit.json`."""

    cause: Cause
    why: str = ""
    """For `ended`, the reason of the request; for `not_started`, the system's error; for a limit of resources, the
    limit in words."""
    exit_code: int | None = None
    """The exit code; `None` if a signal ended the process, or if the code is unknown."""
    signal: int | None = None
    started_at: str = ""
    """The start of the process, as ISO 8601 in UTC."""
    ended_at: str = ""
    duration_seconds: float | None = None
    swept: int = 0
    """The number of leftover processes of tools that were killed; 0 in a sandbox, where the kernel kills them."""
    pid: int | None = None
    pid_start: int | None = None
    """Field 22 of `/proc/<pid>/stat`: a pid is an identity only with this field, the boot and the namespace."""
    boot_id: str = ""
    pid_namespace: str = ""

    @property
    def ended_at_seconds(self) -> float | None:
        """The time of the end, in seconds since the epoch; `None` if no time is recorded."""
        try:
            return datetime.fromisoformat(self.ended_at).timestamp()
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """The progress of a run, as far as its stream was read."""

    session_id: str | None = None
    last_event: str = ""
    turns: int = 0
    """The number of turns of the agent, without turns of its sub-agents."""
    tokens: int = 0
    """The number of all tokens up to now: input, output, cache read and cache written."""
    cost_usd: float = 0.0
    """The cost up to now in US dollars, if the CLI reports the cost while it works."""
    results: int = 0
    """The number of results of the session; more than one if the CLI continued by itself."""
    waits_for: WaitsFor = ""
    """The work for which the CLI waits after the last result."""
    result_text: str = ""
    """The text of the last result, if the CLI waits for commands alone."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one agent run."""

    ended: Ended
    kind: str = ""
    """The more exact kind of the ending, for example `rate_limit`, `turns` or `signal`."""
    text: str | None = None
    """The final text, as JSON for a result that is no string; `None` if no result counts."""
    pieces: tuple[str, ...] = ()
    """The parts of the model's last message, in order, if the text is not the whole message."""
    left_out: int = 0
    """The number of characters missing before `text`: of a long final text only the end is kept."""
    structured: Any = None
    """The CLI's own structured output, as parsed JSON; `None` without one."""
    session_id: str | None = None
    model: str | None = None
    usage: Usage = NO_USAGE
    """The usage and cost of this run alone."""
    context_tokens: int = 0
    """The session's length in tokens at the last request, with the answer; 0 if the stream does not report the
    length."""
    turns: int = 0
    tool_calls: int = 0
    api_retries: int = 0
    denials: tuple[str, ...] = ()
    """Tools that were denied, as `Name` or `Name(argument)`."""
    warnings: tuple[str, ...] = ()
    message: str = ""
    """The description of the failure, in the CLI's words if the CLI described the failure."""
    remedy: str = ""
    retryable: bool = False
    """Whether a later retry may succeed without help."""
    retry_after_seconds: float | None = None
    """The wait in seconds before a retry, counted from the run's end, even if the outcome is read much later."""
    retry_is_named: bool = False
    """Whether the CLI named a future time for the retry; a named wait does not grow from retry to retry."""
    ended_at_seconds: float | None = None
    """The end of the run, in seconds since the epoch."""
    exit_code: int | None = None
    signal: int | None = None
    duration_seconds: float | None = None
    skipped_lines: int = 0
    """The number of lines of the stream over 16 MiB, which were skipped."""

    @property
    def may_be_of_session(self) -> bool:
        """Whether the model API may have refused the whole session, and not only the last request."""
        return self.ended == "api_error" and self.kind in _MAY_BE_OF_SESSION

    @property
    def has_answer(self) -> bool:
        """Whether the CLI finished its work, so that its text, or a further turn, can give an answer."""
        return self.ended in {"ok", "denied"} or (self.ended == "no_result" and self.kind != "no_result_event")


def bound_answer(outcome: Outcome, limit_kib: int) -> tuple[Outcome, tuple[str, ...]]:
    """Return the outcome with an answer within the limit, and notes on what was left out.

    Structured output over the limit is dropped completely, because a part of a JSON value is another value.
    """
    most, text = limit_kib * _KIB, outcome.text or ""
    left_out = outcome.left_out + max(0, len(text) - most)
    notes: tuple[str, ...] = ()
    if left_out:
        length = (outcome.left_out + len(text)) // _KIB
        notes = (f"answer limit of {limit_kib} KiB reached: of {length} KiB only the end was read ({_SETTING}).",)
        outcome = replace(outcome, text=mask(text)[-most:], pieces=())
    if sum(map(len, outcome.pieces)) > most:
        outcome = replace(outcome, pieces=())
    if outcome.structured is not None and len(json.dumps(outcome.structured, ensure_ascii=False)) > most:
        words = f"answer limit of {limit_kib} KiB reached: the structured output was not read ({_SETTING})."
        notes, outcome = (*notes, words), replace(outcome, structured=None)
    return outcome, notes


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended, with the reason and the remedy."""

    ended: Ended
    kind: str = ""
    message: str = ""
    remedy: str = ""
    retryable: bool = False
    retry_after_seconds: float | None = None
    retry_is_named: bool = False
    resets_at: float | None = None
    """The end of a usage limit, in seconds since the epoch, if the CLI named it outside the message."""
