"""What a CLI's stream says, in one form for all CLIs."""

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
"""How an agent run ended: with a result; by the model API; at a limit; with denied tools; by a request; by itself
without a result; or in good order, and yet without a result."""

Cause = Literal[
    "exited", "wall_limit", "idle_limit", "orphan_limit", "ended", "terminated", "not_started", "lost",
    "process_limit", "memory_limit", "socket_limit", "disk_limit", "tree_limit", "tree_size_limit", "output_limit",
]  # fmt: skip
"""Why the agent's process ended: by itself; at a limit that its supervisor holds; on request; with its
supervisor's own end; it never started; or nobody saw it end."""


WaitsFor = Literal["", "commands", "tasks"]
"""What a CLI waits for after a result: nothing; only commands of its shell, which may be servers that never end;
or work with which it continues."""

_MAY_BE_OF_SESSION: Final = frozenset({"context_length", "invalid_request", "unknown", "refusal"})


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """How the agent's process ended, as its supervisor saw it: `exit.json`."""

    cause: Cause
    why: str = ""
    """For `ended`, the reason that was given; for `not_started`, what the system answered; for a limit of what it
    used, that limit in words."""
    exit_code: int | None = None
    """`None` when a signal ended it, or nobody knows."""
    signal: int | None = None
    started_at: str = ""
    """ISO 8601, UTC."""
    ended_at: str = ""
    duration_seconds: float | None = None
    swept: int = 0
    """Processes of its tools that were still there, and were killed; 0 in a sandbox, where the kernel does it."""
    pid: int | None = None
    pid_start: int | None = None
    """Field 22 of `/proc/<pid>/stat`: a pid counts only with it, the boot and the namespace."""
    boot_id: str = ""
    pid_namespace: str = ""

    @property
    def ended_at_seconds(self) -> float | None:
        """When it ended, in seconds since the epoch; `None` where that is not written down."""
        try:
            return datetime.fromisoformat(self.ended_at).timestamp()
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """What a stream has said so far."""

    session_id: str | None = None
    last_event: str = ""
    turns: int = 0
    """Turns of the assistant, without those of its sub-agents."""
    tokens: int = 0
    """All tokens so far: input, output, cache read and cache written."""
    cost_usd: float = 0.0
    """US dollars so far, of a CLI that reports them while it works."""
    results: int = 0
    """Results of the session; more than one when the CLI went on by itself."""
    waits_for: WaitsFor = ""
    """What the CLI waits for after the last of them."""
    result_text: str = ""
    """The text of that one, where the CLI waits for commands alone."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one agent run came to."""

    ended: Ended
    kind: str = ""
    """What kind of `api_error`, `limit`, `crashed` and so on: `rate_limit`, `turns`, `signal` …"""
    text: str | None = None
    """The final text; a result that is no string is its JSON. `None` where no result counts."""
    pieces: tuple[str, ...] = ()
    """The parts of the model's last message, in order, where the text is not all of it."""
    left_out: int = 0
    """Characters of the final text before those in `text`: of a long one only the end is kept."""
    structured: Any = None
    """The CLI's own structured output, as JSON gives it; `None` when there is none."""
    session_id: str | None = None
    model: str | None = None
    usage: Usage = NO_USAGE
    """Of this run alone, its cost too."""
    context_tokens: int = 0
    """The session's length at its last request, with the answer; 0 if the stream does not report it."""
    turns: int = 0
    tool_calls: int = 0
    api_retries: int = 0
    """Retries inside the CLI."""
    denials: tuple[str, ...] = ()
    """Tools that were denied, as `Name` or `Name(argument)`."""
    warnings: tuple[str, ...] = ()
    message: str = ""
    """What went wrong, in the CLI's words where it has any."""
    remedy: str = ""
    retryable: bool = False
    """Whether the same may succeed later with nobody's help."""
    retry_after_seconds: float | None = None
    """From the run's end on, however much later it is read."""
    retry_is_named: bool = False
    """Whether the CLI named that time, and it was to come: then it does not grow from one wait to the next."""
    ended_at_seconds: float | None = None
    """Seconds since the epoch."""
    exit_code: int | None = None
    signal: int | None = None
    duration_seconds: float | None = None
    skipped_lines: int = 0
    """Lines of the stream over 16 MiB."""

    @property
    def may_be_of_session(self) -> bool:
        """Whether the model API may have refused the whole session, and not only its last request."""
        return self.ended == "api_error" and self.kind in _MAY_BE_OF_SESSION

    @property
    def has_answer(self) -> bool:
        """Whether the CLI came to its own end, so that its text is worth reading and its session worth asking."""
        return self.ended in {"ok", "denied"} or (self.ended == "no_result" and self.kind != "no_result_event")


def bound_answer(outcome: Outcome, limit_kib: int) -> tuple[Outcome, tuple[str, ...]]:
    """Return an outcome whose answer is within a limit, and what of it is not read; nothing where all is.

    Structured output over the limit is not read at all: half of it is another value.

    Args:
        outcome: What a run came to.
        limit_kib: At 1024 characters for each KiB.
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
    """How a run ended and why, and what can be done."""

    ended: Ended
    kind: str = ""
    message: str = ""
    remedy: str = ""
    retryable: bool = False
    retry_after_seconds: float | None = None
    retry_is_named: bool = False
    """Whether the CLI named that time."""
    resets_at: float | None = None
    """When a usage limit ends, in seconds since the epoch, where the CLI said so beside its words."""
