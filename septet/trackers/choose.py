"""Which trackers a worker has a key for, and which repository the code of an issue lives in."""

from septet.contracts.tracker import TrackerName
from septet.errors import InvalidInputError
from septet.settings import Settings
from septet.trackers.linear.api import API_URL, LinearApi
from septet.trackers.linear.tracker import LinearTracker
from septet.trackers.tracker import Tracker, TrackerIssue


def tracker_for(name: TrackerName, settings: Settings) -> Tracker:
    """Return a tracker, asked with the worker's key.

    Raises:
        InvalidInputError: The worker has no key for it.
    """
    if settings.linear_token is None:
        raise InvalidInputError(
            f"No key for {name.title()} is set.",
            remedy="Set SEPTET_LINEAR_TOKEN here and for the worker, and start it again.",
        )
    return LinearTracker(LinearApi(settings.linear_token.get_secret_value(), settings.linear_api_url or API_URL))


def repository_of(issue: TrackerIssue, settings: Settings) -> str:
    """Return the repository of an issue: its project's, or else its team's, as the settings say.

    Raises:
        InvalidInputError: They name none.
    """
    for name in (*issue.projects, issue.group):
        if repository := settings.linear_repositories.get(name.lower()):
            return repository
    raise InvalidInputError(
        f"No repository is set for {issue.key}.",
        remedy=f"Set SEPTET_LINEAR_REPOSITORIES={issue.group}=https://github.com/OWNER/NAME for the worker.",
    )
