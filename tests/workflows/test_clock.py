"""Doctor's check of a clock against the clock of a real server."""

from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import Client

from clients.cli.doctor.server_checks import clock_checks

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    ("off", "status", "words"),
    [
        (timedelta(), "ok", "agree"),
        (timedelta(minutes=5), "warning", "300 s ahead of the server's"),
        (timedelta(minutes=-5), "warning", "s behind the server's"),
    ],
    ids=["right", "ahead", "behind"],
)
async def test_a_clock_that_is_off_is_told(client: Client, off: timedelta, status: str, words: str) -> None:
    """Doctor compares the clock with the server's clock, and reports how far it is ahead or behind."""
    (check,) = await clock_checks(client, lambda: datetime.now(UTC) + off)
    assert (check.status, words in check.message) == (status, True), check
