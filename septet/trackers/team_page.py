"""The page of a team in Linear: by its address people name the team whose issues are taken."""

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
    """Its key, such as `ENG`."""

    @property
    def address(self) -> str:
        """The page, however somebody had it open."""
        return f"https://linear.app/{self.workspace}/team/{self.team}"


def team_page(text: str) -> TeamPage | None:
    """Return the team whose page an address names; `None` where it is no such page."""
    page = _PAGE.fullmatch(text.strip())
    return TeamPage(page["workspace"].lower(), page["team"].upper()) if page is not None else None
