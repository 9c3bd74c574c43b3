"""Find the issue that a person names by the address of the issue's page, in a tracker or on a forge."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from clients.starting.checks import check_agents, checked_order
from clients.starting.repository_path import issue_page
from septet.contracts.order import WorkOrderInput
from septet.contracts.tracker import TrackedIssue, TrackerName, tracked_order_id
from septet.errors import InvalidInputError
from septet.settings import Settings

if TYPE_CHECKING:
    from septet.contracts.tracker import TeamPage
    from septet.trackers.tracker import Tracker

_PAGE: Final = re.compile(r"https://linear\.app/[^/?#]+/issue/(?P<key>[A-Za-z0-9_]{1,20}-[0-9]{1,9})(?:[/?#].*)?")


def tracker_key(text: str) -> str:
    """Return the key, such as `ABC-12`, of the Linear issue at this address; empty for other addresses."""
    page = _PAGE.fullmatch(text.strip())
    return page["key"].upper() if page is not None else ""


def with_issue_of_page(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a work order's fields, in which the address of an issue's page is split into repository and issue.

    The address of a tracker's issue becomes the field `tracker`; `find_order` reads the issue later.
    """
    text = fields.get("repository")
    if isinstance(text, str) and (key := tracker_key(text)):
        named = {name: value for name, value in fields.items() if value is not None}
        return {"tracker": {"tracker": "linear", "id": key, "key": key}, **named}
    page = issue_page(text) if isinstance(text, str) and fields.get("issue") is None else None
    if page is None or fields.get("title") is not None:
        return dict(fields)
    return {**fields, "repository": page.repository, "issue": page.issue}


def check_unread_order(order: WorkOrderInput, settings: Settings, *, is_here: bool) -> None:
    """Check a work order, but not its tracker's issue, which is read only when the work order starts.

    Raises:
        InvalidInputError: As for `checked_order`; or the settings here have no key for the tracker.
    """
    if order.tracker is not None:
        _tracker_for(order.tracker.tracker, settings)
    if order.tracker is not None and tracker_key(order.repository):
        check_agents((order.agent, order.fallback_agent))
    else:
        checked_order(order, is_here=is_here)


def find_order(
    order: WorkOrderInput, order_id: str | None, settings: Settings, *, again: bool
) -> tuple[WorkOrderInput, str | None]:
    """Read a work order's issue from its tracker; return the work order and its id.

    The settings for the issue's project or team supply a missing agent or repository.

    Raises:
        InvalidInputError: No key or no repository is set here, or the agent does not exist.
        NotFoundError: The key sees no such issue.
        TrackerUnavailableError: The tracker did not answer.
        TrackerError: The tracker refused.
    """
    from septet.trackers.choose import agent_of, repository_of

    tracked = order.tracker
    if tracked is None:
        return order, order_id
    if tracked.id == tracked.key:  # the issue is not read yet
        issue = _tracker_for("linear", settings).read_issue(tracked.key)
        where = {
            "repository": repository_of(issue, settings) if tracker_key(order.repository) else order.repository,
            "tracker": TrackedIssue(tracker="linear", id=issue.id, key=issue.key),
            "agent": order.agent or agent_of(issue, settings),
        }
        order = order.model_copy(update=where)
    return order, id_of_issue(order, again=again) if order_id is None else order_id


def id_of_issue(order: WorkOrderInput, *, again: bool) -> str | None:
    """Return the work order's id, made from its tracker's issue; `None` without a tracker, or if `again`."""
    if order.tracker is None or again:
        return None
    return tracked_order_id(order.tracker.tracker, order.tracker.key)


def with_issue_of(order: WorkOrderInput, first: WorkOrderInput) -> WorkOrderInput:
    """Return `order`, a repeat of `first`; if both name one tracker's issue, `first` supplies missing values."""
    if order.tracker is None or first.tracker is None or order.tracker.key != first.tracker.key:
        return order
    repository = first.repository if tracker_key(order.repository) else order.repository
    update = {"repository": repository, "tracker": first.tracker, "agent": order.agent or first.agent}
    return order.model_copy(update=update)


def expect_team(page: "TeamPage", settings: Settings) -> None:
    """Check that the settings have a key for the tracker, and repositories for the issues of teams.

    Raises:
        InvalidInputError: A setting is missing.
    """
    _tracker_for("linear", settings)
    if not settings.linear_repositories:
        raise InvalidInputError(
            f"No repository is set for the issues of {page.team}.",
            remedy=f"Set SEPTET_LINEAR_REPOSITORIES={page.team}=REPOSITORY here and for the worker.",
        )


def _tracker_for(name: TrackerName, settings: Settings) -> "Tracker":
    from septet.trackers.choose import tracker_for

    return tracker_for(name, settings)
