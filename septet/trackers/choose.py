"""Choose the tracker, and the repository and agent for its issues, as the settings say."""

from collections.abc import Mapping

from septet.contracts.names import AGENTS
from septet.contracts.tracker import TrackerName
from septet.errors import InvalidInputError
from septet.settings import Settings
from septet.trackers.linear.api import API_URL, LinearApi
from septet.trackers.linear.tracker import LinearTracker
from septet.trackers.tracker import Tracker, TrackerIssue


def tracker_for(name: TrackerName, settings: Settings) -> Tracker:
    """Return a tracker that uses the worker's key.

    Raises:
        InvalidInputError: The worker has no key for the tracker.
    """
    if settings.linear_token is None:
        raise InvalidInputError(
            f"No key for {name.title()} is set.",
            remedy="Set SEPTET_LINEAR_TOKEN here and for the worker, and start it again.",
        )
    return LinearTracker(LinearApi(settings.linear_token.get_secret_value(), settings.linear_api_url or API_URL))


def repository_of(issue: TrackerIssue, settings: Settings) -> str:
    """Return the repository that the settings name for an issue's project, or else for the issue's team.

    Raises:
        InvalidInputError: The settings name no repository.
    """
    if repository := _choice_for(issue, settings.linear_repositories):
        return repository
    raise InvalidInputError(
        f"No repository is set for {issue.key}.",
        remedy=f"Add {issue.group}=https://github.com/OWNER/NAME to SEPTET_LINEAR_REPOSITORIES here and where "
        "the worker (`septet up`) runs, and start the worker again.",
    )


def agent_of(issue: TrackerIssue, settings: Settings) -> str | None:
    """Return the agent that the settings name for an issue's project or else its team; `None` for no agent.

    Raises:
        InvalidInputError: There is no such agent.
    """
    agent = _choice_for(issue, settings.linear_agents)
    if agent is not None and agent not in AGENTS:
        message = f"There is no agent {agent!r}, which SEPTET_LINEAR_AGENTS names for {issue.key}."
        raise InvalidInputError(message, remedy=f"Name one of {', '.join(AGENTS)}.")
    return agent


def _choice_for(issue: TrackerIssue, choices: Mapping[str, str]) -> str | None:
    found = (choices.get(name.lower()) for name in (*issue.projects, issue.group))
    return next((choice for choice in found if choice), None)
