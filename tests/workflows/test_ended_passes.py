"""Passes of intakes that have ended before they finished: their claims are free."""

import uuid

import pytest
from fakes.waiting import wait_until
from temporalio.client import Client

from activities.intake.intake import ended_claimants

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
