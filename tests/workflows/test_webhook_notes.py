"""A host learns from the intakes which repositories send webhooks."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from fakes.waiting import wait_until
from temporalio.client import Client

from clients.temporal.intakes import IntakeClient
from septet.contracts.intake import IntakeInput
from septet.git.engine.address import parse_address
from workers.watching.pull_requests import WebhookNotes

pytestmark = pytest.mark.asyncio(loop_scope="session")


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
