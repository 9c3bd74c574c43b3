"""What people wrote on the issues and pull requests of a repository since some time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

from septet.forges.forge import Forge

MOST_PAGES: Final = 5
"""What is on later pages is found from the time of the last one on."""


@dataclass(frozen=True, slots=True)
class NewComment:
    """One comment, and where it stands."""

    id: int
    number: int
    """Of the issue or the pull request."""
    is_on_pull_request: bool
    author: str
    body: str
    created_at: str
    """ISO 8601."""


@runtime_checkable
class CommentedForge(Forge, Protocol):
    """A forge that lists what was written in a whole repository."""

    def comments_since(self, since: datetime) -> tuple[NewComment, ...]:
        """Return what was written on issues and pull requests since then, from the oldest to the newest.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """
