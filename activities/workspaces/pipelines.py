"""A pipeline's reads of a forge, and its records on disk."""

from dataclasses import dataclass

from temporalio import activity

from activities.host.cancellation import cancellable_thread
from activities.host.failures import OPENING_TRIES, translating_failures
from activities.host.host import Host
from septet.contracts.pipeline import IssuesRead, ReadIssues
from septet.contracts.pipeline_view import PipelineView
from septet.pipelines.issues import read_issues
from septet.pipelines.records import note, report
from septet.pipelines.store import store_of
from septet.system.threads import shielded_thread


@dataclass(frozen=True, slots=True)
class PipelineActivities:
    """The pipelines of one host."""

    host: Host

    @activity.defn(name="read_issues")
    async def read_issues(self, request: ReadIssues) -> IssuesRead:
        """Return issues of a forge with their titles, and the dependencies that their texts name.

        Only these issues count as dependencies. Idempotent; writes nothing.

        Raises:
            ApplicationError: Issues are missing or closed, no open issue has the label, or the forge did not
                answer.
        """
        async with self.host.working(most_tries=OPENING_TRIES):
            return await cancellable_thread(self.host.threads.network, self._read, request)

    def _read(self, request: ReadIssues) -> IssuesRead:
        _, forge = self.host.forges.of(request.repository)
        return IssuesRead(issues=read_issues(forge, request))

    @activity.defn(name="note_results")
    async def note_results(self, view: PipelineView) -> None:
        """Record the state of changed issues, and write both documents of results.

        Idempotent. Leaves `STATE/pipelines/<id>/planning-results.json` and `execution-results.json`, whole at
        every moment, with all issues that were ever noted here.

        Raises:
            ApplicationError: The disk refused.
        """
        with translating_failures(self.host.state.root):
            await shielded_thread(self.host.threads.disk, note, store_of(self.host.state, view.id), view)

    @activity.defn(name="write_report")
    async def write_report(self, view: PipelineView) -> None:
        """Record the issues as `note_results` does, and write the report.

        Idempotent. Leaves `STATE/pipelines/<id>/report.md` and `report.json`.

        Raises:
            ApplicationError: The disk refused.
        """
        with translating_failures(self.host.state.root):
            await shielded_thread(self.host.threads.disk, report, store_of(self.host.state, view.id), view)
