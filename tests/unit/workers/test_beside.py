"""Tasks beside a worker run as long as the worker runs."""

import asyncio

from structlog.testing import capture_logs

from workers.beside import beside, repeat


async def test_a_look_that_fails_is_made_again_whatever_it_fails_of() -> None:
    """A failed task is logged as an error and runs again, whatever the exception is."""
    looks: list[int] = []
    again = asyncio.Event()

    async def look() -> None:
        looks.append(1)
        if len(looks) == 1:
            message = "a row that cannot be read"
            raise ValueError(message)
        again.set()

    with capture_logs() as logs:
        async with beside(repeat(look, lambda: 0.0, "not_looked")), asyncio.timeout(10):
            await again.wait()
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("not_looked", "error")]


async def test_work_that_ends_by_a_fault_is_told_and_fails_nothing() -> None:
    """The end of a failed task is logged at once, and the block continues."""
    message = "a defect"

    async def work() -> None:
        raise ValueError(message)

    with capture_logs() as logs:
        async with beside(work()):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert [(entry["event"], str(entry["exc_info"])) for entry in logs] == [("work_beside_ended", message)]
