"""Decide what follows an ended run: accept its outcome, give up, or start an agent again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from septet.agents.outcomes.endings import BUDGET, CANCELLED, OTHER_DIALECT, PAUSED, SILENT, SUPERSEDED
from septet.agents.outcomes.outcome import Outcome
from septet.agents.runs.records import StartReason

Rung = Literal["adopt", "read", "resume", "rerun"]
"""How a retry got the outcome: from a living agent, from disk, from a resumed session, or from a new start."""

SessionUse = Literal["new", "resumed", "asked"]
"""The session of a run: a new session, a resumed session, or a session that gets only a question about its own
work.
"""

_RESUMED_LIMITS: Final = frozenset({"turns", "output_tokens", "idle", SILENT})
_INTERRUPTIONS_BORNE: Final = 10
"""After so many interruptions, the next counts as a crash: the agent may crash its machine at every start."""
BEGIN_ANEW: Final = frozenset({"context", "session", "refused", "rerun"})
_NEVER_RAN: Final = frozenset({"refused", "not_started", OTHER_DIALECT})
"""The kinds of crashes that neither a resume nor a rerun can repair."""
_NO_SESSION: Final = frozenset({"unknown_session", "local_answer"})
"""The kinds of crashes that leave no session to resume; the earlier work is in the worktree."""


@dataclass(frozen=True, slots=True)
class Accept:
    """The decision to use the last outcome as the result."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The decision to report the last outcome as the failure of this attempt."""

    crashed_again: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """The decision to start an agent."""

    because: StartReason
    session_id: str | None = None
    """The session to resume; `None` for a new session."""
    serial: int = 1
    was_reset: bool = False
    """Whether a person has reset the activity: the session may know work that the worktree no longer has."""
    earlier: tuple[StartReason, ...] = ()

    @property
    def rung(self) -> Rung | None:
        """`resume` for a start in an earlier session, `rerun` for a repeat in a new session, otherwise `None`."""
        if self.session_id is not None:
            return "resume"
        return "rerun" if self.because in {*BEGIN_ANEW, "interrupted"} else None

    @property
    def leaves_a_session(self) -> bool:
        """Whether the agent repeats a turn in a new session, which knows nothing of the earlier work."""
        return self.session_id is None and self.because in {"rerun", "interrupted"}


Move = Accept | GiveUp | Start


def next_move(
    starts: Sequence[StartReason],
    last: Outcome | None,
    *,
    seen_now: bool,
    session: SessionUse = "new",
    resumes_after_kill: bool = True,
) -> Move:
    """Return the next move after the last outcome; `last` is `None` before the first run.

    `starts` has the reasons of all earlier starts, by any attempt or worker. `seen_now` states that this attempt
    followed the last run to its end; otherwise the outcome was read from disk.
    """
    if last is None:
        return Start("first")
    if last.has_answer or (last.ended, last.kind) == ("cancelled", CANCELLED):
        return Accept()
    if last.ended == "cancelled" and (
        last.kind in {PAUSED, BUDGET} or starts.count("interrupted") < _INTERRUPTIONS_BORNE
    ):
        return _after_interruption(last, seen_now=seen_now)
    if last.ended == "api_error":
        return _after_api_error(starts, last, session, seen_now=seen_now)
    if last.ended == "limit":
        return _after_limit(starts, last)
    crash = last if resumes_after_kill else replace(last, session_id=None)
    return _after_crash(starts, crash, session, seen_now=seen_now)


def hand_over(move: Move, starts: Sequence[StartReason], last: Outcome | None) -> Move:
    """Return the start of another agent if the model has refused for the first time; otherwise return `move`."""
    refused = last is not None and last.ended == "api_error" and last.kind == "refusal"
    return Start("refused") if refused and "refused" not in starts else move


def _after_interruption(last: Outcome, *, seen_now: bool) -> Move:
    """Return a new start if a budget caused the interruption, or `last` was read from disk; otherwise no start."""
    if not seen_now or last.kind == BUDGET:  # the budget is checked before the next start
        return Start("interrupted", last.session_id)
    return Accept() if last.kind == SUPERSEDED else GiveUp()  # the lease refuses a superseded attempt


def _after_api_error(starts: Sequence[StartReason], last: Outcome, session: SessionUse, *, seen_now: bool) -> Move:
    """Replace a session that may be broken; retry after an earlier attempt's temporary error; else give up."""
    if session != "asked" and _has_broken_session(last, session):
        because: StartReason = "context" if last.kind == "context_length" else "session"
        if because not in starts:
            return Start(because)
    if seen_now or not last.retryable:
        return GiveUp()
    return Start("waited", last.session_id if _has_worked(last) else None)


def _has_broken_session(last: Outcome, session: SessionUse) -> bool:
    """Return whether the session may have caused an API error, and a new session may help.

    An unknown error counts only at the first request of a resumed session: at other times it may be temporary.
    """
    if not last.may_be_of_session or last.kind == "context_length":
        return last.may_be_of_session
    if last.kind == "unknown":
        return session == "resumed" and last.retryable and not _has_worked(last)
    return session == "resumed" or last.tool_calls > 0


def _has_worked(last: Outcome) -> bool:
    return last.tool_calls > 0 or last.usage.output_tokens > 0


def _after_limit(starts: Sequence[StartReason], last: Outcome) -> Move:
    if last.kind == BUDGET:
        return Start("interrupted", last.session_id)
    if last.kind in _RESUMED_LIMITS and last.session_id is not None and "limit" not in starts:
        return Start("limit", last.session_id)
    if last.kind == SILENT and last.session_id is None and BEGIN_ANEW.isdisjoint(starts):
        return Start("rerun")
    return GiveUp()


def _after_crash(starts: Sequence[StartReason], last: Outcome, session: SessionUse, *, seen_now: bool) -> Move:
    if last.kind in _NEVER_RAN:
        return GiveUp() if seen_now or not last.retryable else Start("waited")
    if last.kind in _NO_SESSION:
        if "session" not in starts and session != "asked":
            return Start("session")
    elif "crashed" not in starts and last.session_id is not None:
        return Start("crashed", last.session_id)
    if "rerun" not in starts:
        return Start("rerun")
    return GiveUp(crashed_again=True)
