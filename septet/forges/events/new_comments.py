"""The comments on a repository's issues and pull requests since some time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

from septet.forges.forge import Forge

MOST_PAGES: Final = 5
"""The most pages of one search; the next search begins at the time of the last comment."""


@dataclass(frozen=True, slots=True)
class NewComment:
    """One comment with its place."""

    id: int
    number: int
    """The number of the issue or the pull request."""
    is_on_pull_request: bool
    author: str
    body: str
    created_at: str
    """ISO 8601."""


@runtime_checkable
class CommentedForge(Forge, Protocol):
    """A forge that lists the comments of a whole repository."""

    def comments_since(self, since: datetime) -> tuple[NewComment, ...]:
        """Return the comments on issues and pull requests since `since`, from the oldest to the newest.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """
