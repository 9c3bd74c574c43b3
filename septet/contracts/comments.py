"""Commands in comments: `/septet approve SHA256`; who gives one, what it asks for, and what is answered."""

from typing import Final

from pydantic import Field

from septet.contracts.comment_commands import CommentCommand
from septet.contracts.forge_events import CommentWritten
from septet.contracts.intake import IntakeInput
from septet.contracts.wire import Wire

ANSWER_LIMIT: Final = 4000


class CommentCall(Wire):
    """A command, who gave it where, and what is taken of the repository."""

    event: CommentWritten
    command: CommentCommand
    intake: IntakeInput
    order_id: str = ""
    """The work order that it is about; empty where none was found before it is obeyed."""


class CommenterStanding(Wire):
    """Whether a command is to be obeyed."""

    is_obeyed: bool
    why_not: str = Field(default="", max_length=ANSWER_LIMIT)
    order_id: str = ""
    """The work order that it is about, from now on; empty where there is none yet."""


class CommandAnswer(Wire):
    """What is answered to a comment; however often it is written, it stands there once."""

    repository: str
    number: int
    comment_id: int
    text: str = Field(max_length=ANSWER_LIMIT)
    is_on_pull_request: bool = False
    """A pull request's comments may be apart from those of issues."""
