"""What every face answers about intakes, and what a forge is answered that delivers an event."""

from septet.contracts.intake import IntakeId
from septet.contracts.replies import Reply
from septet.contracts.wire import Wire


class IntakeView(Wire):
    """An intake as it is now."""

    id: IntakeId
    repository: str
    label: str
    every_seconds: int
    agent: str | None = None
    model: str | None = None
    project: str | None = None
    at_once: bool = False
    approve_plan: bool = False
    draft: bool = False
    is_paused: bool = False
    passes: int = 0
    """How often its schedule has looked."""
    next_at: str | None = None
    """When it looks next: ISO 8601, UTC."""


class IntakeReply(Reply):
    """One intake."""

    intake: IntakeView


class IntakesReply(Reply):
    """All intakes."""

    intakes: tuple[IntakeView, ...] = ()


class IntakeRemovedReply(Reply):
    """An intake that takes no more."""

    removed: IntakeId


class WebhookReply(Reply):
    """What became of a delivery."""

    accepted: bool
    why: str = ""
    """Why it was not: nobody takes issues of the repository, it says nothing to act on, or it came before."""
    workflows: tuple[str, ...] = ()
    """What it has started."""
