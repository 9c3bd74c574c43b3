"""The outcome of a CLI whose stream a test writes."""

import json
from collections.abc import Iterable
from typing import Any, Final

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import NO_USAGE, ExitRecord, Outcome
from septet.contracts.facts import Usage

CLIS: Final = ("claude", "codex", "copilot", "gemini", "opencode")
GOOD: Final = ExitRecord("exited", exit_code=0)
BAD: Final = ExitRecord("exited", exit_code=1)
KILLED: Final = ExitRecord("exited", signal=9)


def lines(events: Iterable[object]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def outcome_of(
    cli: str, *events: dict[str, Any], end: ExitRecord = GOOD, stderr: str = "", before: Usage = NO_USAGE
) -> Outcome:
    """Return the outcome of a stream of these events; `before` is the usage of earlier runs in the session."""
    dialect = adapter_for(cli).dialect(before)
    dialect.feed(lines(events))
    return dialect.outcome(end, stderr)


def part(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "sessionID": "ses_1", "part": fields}
