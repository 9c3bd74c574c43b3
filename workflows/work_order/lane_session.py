"""The session that a work order's agent goes on with in a lane, and what that one knew when it began."""

from dataclasses import dataclass
from typing import Self

from septet.contracts.lanes import Lane, SessionContext
from septet.contracts.steps import StepResult


@dataclass
class LaneSession:
    """It may change on the way: a session that is lost or too long is followed by a new one."""

    id: str | None = None
    """`None`: a new one begins."""
    tokens: int = 0
    """How long it is."""
    context: SessionContext = "shared"
    summarised: bool = False
    """The lane's host keeps a summary, with which each new one begins."""

    @classmethod
    def of(cls, lane: Lane) -> Self:
        """Return the session as the lane is given."""
        session = cls(lane.session_id, lane.context_tokens, "shared", lane.summarised)
        if session.id is None:
            session._forget_context()
        return session

    def begin_anew(self, *, is_kept: bool) -> None:
        """Be followed by a new one; a summary is kept of it, or there is none but an earlier one's."""
        self.id, self.tokens, self.summarised = None, 0, is_kept or self.summarised
        self._forget_context()

    def follow(self, result: StepResult) -> None:
        """Go on as the session in which the agent answered last."""
        if result.session_id is None:
            return
        if self.id not in {None, result.session_id}:
            self._forget_context()
        elif not result.context_tokens:
            result = result.model_copy(update={"context_tokens": self.tokens})
        self.id, self.tokens = result.session_id, result.context_tokens

    def lane_values(self) -> dict[str, object]:
        """Return what the lane is told of it."""
        return {"session_id": self.id, "context_tokens": self.tokens, "summarised": self.summarised}

    def _forget_context(self) -> None:
        self.context = "summarised" if self.summarised else "fresh"
