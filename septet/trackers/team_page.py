"""The page of a team in Linear: people name a team by the address of the team's page."""

import re
from dataclasses import dataclass
from typing import Final

_PAGE: Final = re.compile(
    r"https://linear\.app/(?P<workspace>[A-Za-z0-9_-]+)/team/(?P<team>[A-Za-z0-9_]{1,20})(?:[/?#].*)?"
)


@dataclass(frozen=True, slots=True)
class TeamPage:
    """A team of a workspace."""

    workspace: str
    team: str
    """The team's key, such as `ENG`."""

    @property
    def address(self) -> str:
        """The address of the team's page, without the rest of the given address."""
        return f"https://linear.app/{self.workspace}/team/{self.team}"


def team_page(text: str) -> TeamPage | None:
    """Return the team of a page's address; `None` if the address is no team's page."""
    page = _PAGE.fullmatch(text.strip())
    return TeamPage(page["workspace"].lower(), page["team"].upper()) if page is not None else None
