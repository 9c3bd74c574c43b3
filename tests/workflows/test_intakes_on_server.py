"""Earlier passes and webhooks of intakes, as a host finds them on the server."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from fakes.waiting import wait_until
from temporalio.client import Client

from activities.intake.issues import ended_claimants
from clients.temporal.intakes import IntakeClient
from septet.contracts.intake import IntakeInput
from septet.git.engine.address import parse_address
from workers.watching.pull_request_polls import WebhookNotes

pytestmark = pytest.mark.asyncio(loop_scope="session")

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
