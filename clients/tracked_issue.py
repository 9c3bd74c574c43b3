"""An issue of a tracker, as a person names it: by the address of its page."""

import re
from typing import Final

from septet.contracts.tracker import TrackedIssue
from septet.settings import Settings

_PAGE: Final = re.compile(r"https://linear\.app/[^/?#]+/issue/(?P<key>[A-Za-z0-9_]{1,20}-[0-9]{1,9})(?:[/?#].*)?")


def tracker_key(text: str) -> str:
    """Return the key of the issue whose page an address names; empty where it is no such page."""
    page = _PAGE.fullmatch(text.strip())
    return page["key"].upper() if page is not None else ""


def find_tracked_issue(key: str, repository: str | None, settings: Settings) -> tuple[str, TrackedIssue]:
    """Return the repository of an issue, as it was named or as the settings say, and the issue.

    Raises:
        InvalidInputError: No key is set here, or no repository.
        NotFoundError: There is no such issue that the key may see.
        TrackerUnavailableError: The tracker did not answer.
        TrackerError: It refused.
    """
    from septet.trackers.choose import repository_of, tracker_for

    issue = tracker_for("linear", settings).read_issue(key)
    found = repository if repository is not None else repository_of(issue, settings)
    return found, TrackedIssue(tracker="linear", id=issue.id, key=issue.key)
