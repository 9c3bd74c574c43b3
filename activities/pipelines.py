"""What a pipeline reads from a forge, and what it keeps on disk."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from temporalio import activity

from activities.attempts import heartbeating
from activities.cancellation import cancellable_thread
from activities.failures import OPENING_TRIES, translating_failures
from activities.host import Host
from septet.contracts.pipeline import IssuesRead, PipelineIssue, ReadIssues
from septet.contracts.pipeline_view import PipelineView
from septet.errors import InvalidInputError, NotFoundError
from septet.forges.forge import Issue
from septet.pipelines.issues import depends_on_in
from septet.pipelines.records import note, report
from septet.pipelines.store import store_of
from septet.system.threads import shielded_thread

_TITLE: Final = 200
_MOST: Final = 100
"""Dependencies of one issue."""
_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class PipelineActivities:
    """The pipelines of one host."""

    host: Host

    @activity.defn(name="read_issues")
    async def read_issues(self, request: ReadIssues) -> IssuesRead:
        """Return issues of a forge with their titles, and what their texts say that they depend on.

        Only what is read here counts as something to depend on. Idempotent; leaves nothing.

        Raises:
            ApplicationError: Issues are missing or closed, no open one has the label, or the forge did not answer.
        """
        with translating_failures(self.host.state.root, most_tries=OPENING_TRIES):
            async with heartbeating(self.host.attempts):
                return await cancellable_thread(self.host.threads.network, self._read, request)

    def _read(self, request: ReadIssues) -> IssuesRead:
        _, forge = self.host.forge(request.repository)
        issues = forge.open_issues(request.label) if request.label else ()
        if request.label and not issues:
            message = f"label: {request.repository} has no open issue with the label {request.label}."
            raise NotFoundError(message, remedy="Give an issue the label, or name the issues by their numbers.")
        wanted = [int(issue_id) for issue_id in request.ids]
        if wanted:
            issues = (*issues, *_all_open(wanted, forge.find_issues(wanted), request.repository))
        known = {str(issue.number) for issue in issues}
        return IssuesRead(issues=tuple(_pipeline_issue(issue, known) for issue in issues))

    @activity.defn(name="note_results")
    async def note_results(self, view: PipelineView) -> None:
        """Note how the issues stand that have changed, and write both documents of results anew.

        Idempotent. Leaves `STATE/pipelines/<id>/planning-results.json` and `execution-results.json`, whole at
        every moment, with all issues that were ever noted here.

        Raises:
            ApplicationError: The disk did not take them.
        """
        with translating_failures(self.host.state.root):
            await shielded_thread(self.host.threads.disk, note, store_of(self.host.state, view.id), view)

    @activity.defn(name="write_report")
    async def write_report(self, view: PipelineView) -> None:
        """Note what is given as `note_results` does, and write the report of all.

        Idempotent. Leaves `STATE/pipelines/<id>/report.md` and `report.json`.

        Raises:
            ApplicationError: The disk did not take them.
        """
        with translating_failures(self.host.state.root):
            await shielded_thread(self.host.threads.disk, report, store_of(self.host.state, view.id), view)


def _all_open(numbers: Sequence[int], issues: Sequence[Issue], repository: str) -> Sequence[Issue]:
    """Return the issues that were found, if they are all that were wanted and all are open.

    Raises:
        NotFoundError: Some are missing.
        InvalidInputError: Some are closed.
    """
    there = {issue.number for issue in issues}
    if missing := [number for number in numbers if number not in there]:
        message = f"issues: {repository} has no {_numbers(missing)}."
        raise NotFoundError(message, remedy="Check the numbers; issues that you may not read look the same.")
    if closed := [issue.number for issue in issues if issue.state == "closed"]:
        raise InvalidInputError(
            f"issues: {_numbers(closed)} of {repository} are closed.", remedy="Leave them out."
        )
    return issues


def _pipeline_issue(issue: Issue, ids: Collection[str]) -> PipelineIssue:
    own = str(issue.number)
    return PipelineIssue(
        id=own, title=issue.title[:_TITLE], depends_on=depends_on_in(issue.body, ids, own)[:_MOST]
    )


def _numbers(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
    return ", ".join(f"#{number}" for number in numbers[:_NAMED]) + more
