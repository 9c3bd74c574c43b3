"""Commands in comments: `/septet approve SHA256`; who gives one, what it asks for, and what is answered."""

from typing import Final, Literal

from pydantic import Field

from septet.contracts.decisions import Sha256, Words
from septet.contracts.forge_events import CommentWritten
from septet.contracts.intake import IntakeInput
from septet.contracts.names import Step
from septet.contracts.wire import Wire

Verb = Literal["run", "retry", "cancel", "approve", "reject", "unknown"]
ANSWER_LIMIT: Final = 4000


class CommentCommand(Wire):
    """What a comment asks for: validated fields, and words that only people and the planner read."""

    verb: Verb
    plan_sha256: Sha256 | None = None
    step: Step | None = None
    """Where to go on."""
    words: Words = ""
    """A reason, or feedback."""


class CommentCall(Wire):
    """A command, who gave it where, and what is taken of the repository."""

    event: CommentWritten
    command: CommentCommand
    intake: IntakeInput


class CommenterStanding(Wire):
    """Whether a command is to be obeyed."""

    is_obeyed: bool
    why_not: str = Field(default="", max_length=ANSWER_LIMIT)


class CommandAnswer(Wire):
    """What is answered to a comment; however often it is written, it stands there once."""

    repository: str
    number: int
    comment_id: int
    text: str = Field(max_length=ANSWER_LIMIT)
