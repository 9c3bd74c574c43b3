"""Passes of intakes, commands in comments and webhooks on a real server, whose histories are kept for replay."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from fakes.running import replayed, result_of
from fakes.waiting import wait_until
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.worker import Worker

from activities.intake.issues import ended_claimants
from clients.temporal.intakes import IntakeClient
from septet.contracts.forge_events import CommentCommand, CommentWritten, Verb
from septet.contracts.intake import (
    ClaimIssue,
    CommandAnswer,
    CommentCall,
    CommenterStanding,
    FindIssues,
    IntakeInput,
    IntakePass,
    IssueClaim,
    IssuesFound,
)
from septet.git.engine.address import parse_address
from workers.watching.pull_request_polls import WebhookNotes
from workflows.intake import CommentCommandWorkflow, Intake

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUEUE: Final = "intake-histories"
REPOSITORY: Final = "https://github.com/o/r"
INTAKE: Final = IntakeInput(repository=REPOSITORY, project="o/r")
_FREE: Final = (1, 2, 7)
"""Issues without a claim."""
_COMMANDS: Final[dict[str, tuple[Verb, int, str]]] = {
    "run-by-comment": ("run", 7, "ada"),
    "run-of-one-taken": ("run", 3, "ada"),
    "cancel-by-comment": ("cancel", 3, "ada"),
    "ignored-comment": ("cancel", 3, "eve"),
}
"""By name: the command, its issue and its author; `eve` may not push."""
INTAKES: Final = ("pass", "nothing-to-take", *_COMMANDS)


@workflow.defn(name="WorkOrder", sandboxed=False)
class OrderOfIntake:
    """A work order that ends at once."""

    @workflow.run
    async def run(self, order: RawValue) -> None:
        """Do nothing."""
        del order


@pytest.mark.parametrize("name", INTAKES)
async def test_a_pass_or_a_command_goes_its_way(client: Client, name: str) -> None:
    """The workflow ends well and replays: free issues get work orders, and commands are obeyed and answered."""
    answers: list[CommandAnswer] = []

    @activity.defn(name="find_issues")
    async def find_issues(request: FindIssues) -> IssuesFound:
        return IssuesFound(numbers=(1, 2, 3) if request.issue is None else ())

    @activity.defn(name="claim_issue")
    async def claim_issue(request: ClaimIssue) -> IssueClaim:
        return IssueClaim(is_own=request.issue in _FREE, order_id=f"wo-{name}-{request.issue}")

    @activity.defn(name="check_commenter")
    async def check_commenter(call: CommentCall) -> CommenterStanding:
        is_obeyed = call.event.author == "ada"
        return CommenterStanding(is_obeyed=is_obeyed, why_not="" if is_obeyed else "eve may not push")

    @activity.defn(name="obey_comment")
    async def obey_comment(call: CommentCall) -> CommandAnswer:
        event = call.event
        return CommandAnswer(repository=REPOSITORY, number=event.number, comment_id=event.comment_id, text="Done.")

    @activity.defn(name="answer_comment")
    async def answer_comment(answer: CommandAnswer) -> None:
        answers.append(answer)

    activities: list[Callable[..., Any]] = [
        find_issues,
        claim_issue,
        check_commenter,
        obey_comment,
        answer_comment,
    ]
    kinds = [Intake, CommentCommandWorkflow, OrderOfIntake]
    async with Worker(client, task_queue=QUEUE, workflows=kinds, activities=activities):
        handle = await client.start_workflow(
            *_start_of(name), id=f"intake-{name}-{uuid.uuid4().hex[:8]}", task_queue=QUEUE
        )
        await result_of(handle)
        await replayed(handle, f"intake/{name}", *kinds)
    assert len(answers) == (name in _COMMANDS and name != "ignored-comment")


def _start_of(name: str) -> tuple[str, Any]:
    """Return the workflow type and the input of a case."""
    if name not in _COMMANDS:
        return "Intake", IntakePass(intake=INTAKE, issue=None if name == "pass" else 9)
    verb, number, author = _COMMANDS[name]
    event = CommentWritten(
        forge="github", repository=REPOSITORY, number=number, comment_id=11, author=author, body=f"/septet {verb}"
    )
    return "CommentCommand", CommentCall(event=event, command=CommentCommand(verb=verb), intake=INTAKE)


MANY = 110


async def test_of_many_ended_passes_none_that_has_taken_an_issue_is_passed_over(client: Client) -> None:
    """The search finds each ended pass with a claim, however many ended since, and no living or unknown pass."""
    queue = f"nobody-{uuid.uuid4().hex}"
    ids = [f"intake/{uuid.uuid4().hex}" for _ in range(MANY)]
    begun = [await client.start_workflow("Intake", id=each, task_queue=queue) for each in ids]
    *ended, living = begun
    for each in ended:
        await each.terminate()

    async def claimants() -> set[str]:
        return {ids[0], living.id, "intake/forgotten"}

    count = f'TaskQueue="{queue}" AND ExecutionStatus="Terminated"'
    await wait_until(lambda: client.count_workflows(count), lambda seen: seen.count == len(ended))
    assert await ended_claimants(client, claimants) == {ids[0]}
    await living.terminate()


async def test_a_repository_that_sends_webhooks_is_known_for_a_day(client: Client) -> None:
    """A repository counts for a day after its last webhook, under each of its addresses; other repositories do not."""
    name = uuid.uuid4().hex
    intakes, repository = IntakeClient(client, f"queue-{name}"), f"https://forge.example/o/{name}"
    intake = (await intakes.add(IntakeInput(repository=repository, every_seconds=86_400))).intake.id
    key = parse_address(repository).key
    try:

        async def is_told(address: str = repository) -> bool:
            notes = WebhookNotes(client)
            await notes.refresh()
            return notes.is_told(address)

        assert not await is_told()
        await intakes.note_delivery(key, datetime.now(UTC) - timedelta(days=2))
        assert not await is_told()
        await intakes.note_delivery(key, datetime.now(UTC))
        await wait_until(is_told)
        assert await is_told(f"git@forge.example:o/{name}.git")
        assert not await is_told("https://forge.example/o/another")
    finally:
        await intakes.remove(intake)
