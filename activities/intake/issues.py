"""Find issues that no workflow works on, and claim an issue for a workflow."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import structlog
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey

from activities.host.cancellation import cancellable_thread
from activities.host.host import Host
from activities.intake.new_commands import find_commands
from septet.contracts.intake import (
    LOOKED_AT_AGAIN,
    TAKEN_AT_ONCE,
    ClaimIssue,
    FindIssues,
    IntakeInput,
    IssueClaim,
    IssuesFound,
    choose_intake,
)
from septet.contracts.order import IssueRequest
from septet.contracts.tracker import (
    TakeTrackedIssue,
    TeamPage,
    TrackedClaim,
    TrackedIssue,
    team_page,
    tracked_order_id,
)
from septet.errors import InvalidInputError, NotFoundError
from septet.forges.choose import forge_name, fork_for
from septet.forges.issue_history import RequestReader, TellingForge
from septet.forges.values import Issue
from septet.git.commits.issue_claims import IssueClaims
from septet.git.engine.address import Address, parse_address
from septet.git.engine.remote import Remote
from septet.system.text import cut
from septet.telemetry.metrics import INTAKE_ISSUES
from septet.telemetry.recorder import RECORDER
from septet.trackers.choose import agent_of, repository_of, tracker_for
from septet.trackers.tracker import IssueMark


def take_issue(
    host: Host, request: TakeTrackedIssue, left_by: AbstractSet[str] = frozenset(), label: str = ""
) -> TrackedClaim:
    """Claim a free issue for a workflow; return whether the workflow has it, or why no workflow may take it.

    Args:
        left_by: The workflows that ended before they started a work order: the issues that they claimed are free.
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
        return TrackedClaim(issue=request.issue, why_not=cut(str(error), 2000))
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


IntakesOf = Callable[[Client, str], Awaitable[tuple[IntakeInput, ...]]]
"""Returns the intakes of a repository or a team; takes the client and the key of the address."""
_REPOSITORY: Final = SearchAttributeKey.for_keyword("SeptetRepository")
_log = structlog.get_logger()


async def no_intakes(client: Client, key: str) -> tuple[IntakeInput, ...]:
    """Return no intakes, because this worker was started without a function that finds them."""
    del client, key
    return ()


@dataclass(frozen=True, slots=True)
class IntakeActivities:
    """Finds and claims issues for intakes, with one host's keys."""

    host: Host
    intakes_of: IntakesOf = no_intakes

    @activity.defn(name="find_issues")
    async def find_issues(self, request: FindIssues) -> IssuesFound:
        """Return open issues that have a label and no claim, the oldest first.

        Idempotent; writes nothing. If the workflow that claimed an issue was terminated before it started the work
        order, the issue is free.

        Raises:
            ApplicationError: The forge or the repository did not answer, or refused.
        """
        async with self.host.working():
            page = team_page(request.repository)
            if page is None:
                address = parse_address(request.repository, home=Path.home())
                find, claimants = self._find, claims_of(self.host, address).claimants
            else:
                find = partial(self._find_in_team, page)
                claimants = partial(self._claimants_in_team, page, request.label)
            left_by = await self._ended_of(claimants)
            return await cancellable_thread(self.host.threads.network, find, request, left_by)

    @activity.defn(name="claim_issue")
    async def claim_issue(self, request: ClaimIssue) -> IssueClaim:
        """Claim an issue for a workflow, unless the issue was claimed before.

        Idempotent: a workflow keeps its claim when it claims again. Writes the ref `refs/septet/issues/<number>`
        in the repository, or an attachment on a tracker's issue. If a person has started a work order for the
        issue, the claim is for that work order. If several intakes match, the claim names the intake whose options
        apply.

        Raises:
            ApplicationError: The repository or the tracker did not answer, or refused.
        """
        async with self.host.working():
            if (page := team_page(request.repository)) is not None:
                return await self._claim_of_team(page, request)
            address = parse_address(request.repository, home=Path.home())
            own = f"wo-{address.key}-{request.issue}"
            order_id = await order_of_issue(activity.client(), address, request.issue) or own
            check = partial(self._check, request)
            requested = await cancellable_thread(self.host.threads.network, check) if order_id == own else None
            if isinstance(requested, str):
                _log.warning("issue_not_taken", repository=request.repository, issue=request.issue, why=requested)
                RECORDER.record(INTAKE_ISSUES, forge=forge_name(address, self.host.settings), outcome="refused")
                return IssueClaim(is_own=False, order_id="", why_not=requested)
            claims = claims_of(self.host, address)
            left_by = await self._ended_of(partial(claims.claimants, request.issue))
            claim = partial(claims.claim, request.issue, order_id, request.claimant, request.claimed_at, left_by)
            is_claimed = await cancellable_thread(self.host.threads.network, claim)
            is_own = is_claimed and order_id == own
            read_labels = partial(self._labels, request)
            intake = await self._intake_for(request, address.key, read_labels) if is_own else None
        outcome = "taken" if is_own else "refused"
        RECORDER.record(INTAKE_ISSUES, forge=forge_name(address, self.host.settings), outcome=outcome)
        return IssueClaim(is_own=is_own, order_id=order_id, intake=intake, requested=requested)

    def _check(self, request: ClaimIssue) -> IssueRequest | str | None:
        """Return an issue's valid request, or why there is none; `None` if the forge cannot report requests."""
        _, forge = self.host.forges.of(request.repository)
        if not isinstance(forge, TellingForge):
            return None
        settings = self.host.settings
        reader = RequestReader(forge, settings.trusted_accounts, settings.on_unknown_edits)
        return reader.read(request.issue, request.label, delivered=request.delivered, commanded=request.commanded)

    def _find(self, request: FindIssues, left_by: AbstractSet[str]) -> IssuesFound:
        address, forge = self.host.forges.of(request.repository)
        issues: tuple[Issue, ...] = ()
        if request.issue is None:
            issues = forge.open_issues(request.label)
        else:
            with suppress(InvalidInputError):  # the number is a pull request's
                issues = forge.find_issues((request.issue,))
        numbers = [each.number for each in issues if each.state == "open" and request.label in each.labels]
        claims = claims_of(self.host, address)
        taken = claims.numbers() - claims.left_by(left_by) if numbers else frozenset()
        found = IssuesFound(numbers=in_turn([each for each in numbers if each not in taken], request.passed_over))
        return find_commands(forge, request, found, address.key)

    def _find_in_team(self, page: TeamPage, request: FindIssues, left_by: AbstractSet[str]) -> IssuesFound:
        """Return a team's unclaimed issues; the result has no commands, because a tracker's comments have none."""
        issues = tracker_for("linear", self.host.settings).open_issues(page.team, request.label)
        free = [each.number for each in issues if each.mark is None or each.mark.claimant in left_by]
        return IssuesFound(numbers=in_turn(free, request.passed_over))

    async def _claim_of_team(self, page: TeamPage, request: ClaimIssue) -> IssueClaim:
        key = f"{page.team}-{request.issue}"
        take = TakeTrackedIssue(issue=TrackedIssue(tracker="linear", id=key, key=key), claimant=request.claimant)
        left_by = await self._ended_of(partial(self._claimants_of_key, key))
        taking = partial(take_issue, self.host, take, left_by, request.label)
        claim = await cancellable_thread(self.host.threads.network, taking)
        if claim.why_not:
            _log.warning("issue_not_taken", issue=key, why=claim.why_not)
        RECORDER.record(INTAKE_ISSUES, forge="linear", outcome="taken" if claim.is_own else "refused")
        address = parse_address(page.address, home=Path.home())
        intake = None
        if claim.is_own:
            tracker = tracker_for("linear", self.host.settings)
            intake = await self._intake_for(request, address.key, lambda: tracker.read_issue(key).labels)
        result = IssueClaim(is_own=claim.is_own, order_id=claim.order_id, tracked=claim, intake=intake)
        return result.model_copy(update={"why_not": cut(claim.why_not, 1000)})

    async def _intake_for(
        self, request: ClaimIssue, key: str, read_labels: Callable[[], Collection[str]]
    ) -> IntakeInput | None:
        """Return the intake whose options apply; `None` if only one exists, or none has the request's label."""
        intakes = await self.intakes_of(activity.client(), key)
        if len(intakes) == 1 or request.label not in {each.label for each in intakes}:
            return None
        return choose_intake(intakes, await cancellable_thread(self.host.threads.network, read_labels))

    def _labels(self, request: ClaimIssue) -> tuple[str, ...]:
        _, forge = self.host.forges.of(request.repository)
        return tuple(label for issue in forge.find_issues((request.issue,)) for label in issue.labels)

    def _claimants_in_team(self, page: TeamPage, label: str) -> frozenset[str]:
        issues = tracker_for("linear", self.host.settings).open_issues(page.team, label)
        return frozenset(each.mark.claimant for each in issues if each.mark is not None)

    def _claimants_of_key(self, key: str) -> frozenset[str]:
        tracker = tracker_for("linear", self.host.settings)
        mark = None
        with suppress(InvalidInputError, NotFoundError):  # `take_issue` reports the error
            mark = tracker.find_mark(tracker.read_issue(key).id)
        return frozenset() if mark is None else frozenset((mark.claimant,))

    async def _ended_of(self, claimants: Callable[[], AbstractSet[str]]) -> frozenset[str]:
        read = partial(cancellable_thread, self.host.threads.network, claimants)
        return await ended_claimants(activity.client(), read)


def in_turn(numbers: Sequence[int], passed_over: Sequence[int]) -> tuple[int, ...]:
    """Return the issues of one pass: first the new issues, then some that earlier passes have passed over."""
    new = [each for each in numbers if each not in passed_over]
    again = [each for each in passed_over if each in numbers][:LOOKED_AT_AGAIN]
    return tuple(new + again)[:TAKEN_AT_ONCE]


def claims_of(host: Host, address: Address) -> IssueClaims:
    """Return the claims on a repository's issues; the claims are in the fork if Septet pushes to a fork."""
    fork = fork_for(address, host.settings)
    url = address.beside(fork).url if fork else address.url
    return IssueClaims(Remote(url, host.settings.git_env, host.forges.token(address)), host.state.scratch)


async def ended_claimants(
    client: Client, read_claimants: Callable[[], Awaitable[AbstractSet[str]]]
) -> frozenset[str]:
    """Return the intakes that claimed issues and ended without completing, as far as the server knows.

    An intake that the server has forgotten counts as completed: its claims stay.

    Args:
        read_claimants: Returns all claimants of issues; called only if an intake ended without completing.

    Raises:
        RPCError: The server did not answer, or refused.
    """
    query = 'WorkflowType="Intake" AND ExecutionStatus IN ("Terminated", "TimedOut", "Failed", "Canceled")'
    passes = {row.id async for row in client.list_workflows(query)}
    ended = set()
    for name in passes and passes & await read_claimants():  # a workflow that was reset continues under its id
        status = (await client.get_workflow_handle(name).describe()).status
        if status not in {WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED}:
            ended.add(name)
    return frozenset(ended)


async def order_of_issue(client: Client, address: Address, issue: int) -> str | None:
    """Return the id of an issue's newest work order; `None` if the server knows none.

    Raises:
        RPCError: The server did not answer, or refused.
    """
    async for row in client.list_workflows(f'WorkflowType="WorkOrder" AND SeptetIssue="{issue}"'):
        url = row.typed_search_attributes.get(_REPOSITORY, "")
        if url and parse_address(url, home=Path.home()).key == address.key:
            return row.id
    return None


async def order_of_pull_request(client: Client, url: str) -> str | None:
    """Return the id of a pull request's newest work order; `None` if the server knows none.

    Raises:
        RPCError: The server did not answer, or refused.
    """
    if '"' in url or "\\" in url:  # the server's query cannot hold these characters
        return None
    async for row in client.list_workflows(f'WorkflowType="WorkOrder" AND SeptetPullRequest="{url}"'):
        return row.id
    return None
