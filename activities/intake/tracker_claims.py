"""Take an issue of a tracker: the mark on the issue names its owner."""

from collections.abc import Set as AbstractSet
from typing import Final

from activities.host.host import Host
from septet.contracts.tracker import TakeTrackedIssue, TrackedClaim, tracked_order_id
from septet.errors import InvalidInputError, NotFoundError
from septet.system.text import cut
from septet.trackers.choose import agent_of, repository_of, tracker_for
from septet.trackers.tracker import IssueMark

_WHY_LIMIT: Final = 2000


def take_issue(
    host: Host, request: TakeTrackedIssue, left_by: AbstractSet[str] = frozenset(), label: str = ""
) -> TrackedClaim:
    """Take an issue for a workflow, unless it was taken before; if settings forbid the issue, return the reason.

    Args:
        host: The host whose key and settings count.
        request: The issue, and the workflow that takes it.
        left_by: The workflows that ended before they had started a work order: their issues are free.
        label: The label that requests work on the issue; empty if a person has delegated the issue.

    Raises:
        TrackerError, TrackerUnavailableError: The tracker refused, or did not answer.
    """
    settings = host.settings
    try:
        tracker = tracker_for(request.issue.tracker, settings)
        issue = tracker.read_issue(request.issue.id)
        repository, agent = repository_of(issue, settings), agent_of(issue, settings)
        host.forges.of(repository)
    except (InvalidInputError, NotFoundError) as error:
        return TrackedClaim(issue=request.issue, why_not=cut(str(error), _WHY_LIMIT))
    if label and (why_not := tracker.label_setter(issue.id, label).refusal(label, settings.trusted_accounts)):
        return TrackedClaim(issue=request.issue, why_not=why_not)
    own = IssueMark(tracked_order_id(request.issue.tracker, issue.key), request.claimant)
    mark = tracker.find_mark(issue.id)
    if mark is None or mark.claimant in left_by:
        tracker.put_mark(issue, own)
        mark = own
    return TrackedClaim(
        issue=request.issue.model_copy(update={"id": issue.id, "key": issue.key}),
        is_own=mark.claimant == request.claimant,
        order_id=mark.order_id,
        repository=repository,
        agent=agent,
        approve_plan=settings.linear_approve_plan,
    )
