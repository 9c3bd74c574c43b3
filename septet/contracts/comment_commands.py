"""What a comment asks for, as validated fields."""

from typing import Annotated, Literal

from pydantic import Field

from septet.contracts.decisions import FINDINGS_NAMED, FindingId, Sha256, Words
from septet.contracts.forge_events import CommentWritten
from septet.contracts.names import Step
from septet.contracts.wire import Wire

Verb = Literal["run", "retry", "cancel", "approve", "reject", "unknown"]


class CommentCommand(Wire):
    """What a comment asks for: validated fields, and words that only people and the planner read."""

    verb: Verb
    plan_sha256: Sha256 | None = None
    findings: Annotated[tuple[FindingId, ...], Field(max_length=FINDINGS_NAMED)] = ()
    """Ids of what is let pass."""
    step: Step | None = None
    """Where to go on."""
    words: Words = ""
    """A reason, or feedback."""


class CommandComment(Wire):
    """A comment that asks for something, as a pass of an intake has found it."""

    event: CommentWritten
    command: CommentCommand
    workflow_id: str = Field(default="", max_length=500)
    """Of the workflow that obeys it: the same, whoever tells of the comment."""


def comment_workflow_id(forge: str, key: str, comment_id: int) -> str:
    """Return the id of the workflow that obeys a comment.

    Args:
        forge: Its name.
        key: The key of the repository's address.
        comment_id: The forge's own.
    """
    return f"comment/{forge}/{key}/{comment_id}"
