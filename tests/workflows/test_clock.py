"""What doctor says of a clock, with a real server's beside it."""

from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import Client

from clients.cli.doctor.clock_check import clock_checks

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
    """It is held against the server's own, whatever the two agree on."""
    (check,) = await clock_checks(client, lambda: datetime.now(UTC) + off)
    assert (check.status, words in check.message) == (status, True), check
