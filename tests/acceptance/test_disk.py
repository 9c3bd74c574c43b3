"""A machine under `septet up` that refuses a write or a program: work orders continue after the repair."""

import time

import pytest
from fakes.repositories import Origin, git
from fakes.septet_command import Septet
from fakes.small_disk import small_disk

pytestmark = [pytest.mark.recovery, pytest.mark.law]

FULL_SECONDS = 2.5
"""Long enough for the step's end, and for several tries to report it to the server."""


@pytest.mark.small_disk
def test_a_full_disk_takes_nothing_from_a_work_order(septet: Septet, origin: Origin) -> None:
    """The disk, with the server's database on it, is full as an agent ends; after the repair the work order completes."""
    with small_disk(septet.state, mib=48, inodes=20_000) as disk, septet.up():
        order = septet.start(origin, "wo-1", implement_plan={"delay_seconds": 1})
        septet.until_works(order, "5-implement_plan-1")
        disk.fill()
        time.sleep(FULL_SECONDS)
        disk.free()
        task = septet.closed(order)
        assert (task["status"], task["error"]) == ("completed", None)
        assert git(origin.bare, "log", "-1", "--format=%s", task["branch_name"])
