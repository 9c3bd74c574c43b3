"""The findings of `septet doctor` about workers and their builds."""

from datetime import timedelta

import pytest

from clients.cli.doctor.server_checks import builds_check
from clients.executions.messages import START_WORKER
from workers.builds.deployment import UNVERSIONED, Routing

CURRENT = Routing(current="one", is_decided=True)


@pytest.mark.parametrize(
    ("routing", "asked", "status", "message", "remedy"),
    [
        (
            CURRENT,
            {"one": 12.3, "two": 4.0},
            "ok",
            "The current build one has a worker, which asked for work 12 s ago. Other builds with workers: two.",
            "",
        ),
        (
            Routing(),
            {UNVERSIONED: -1.0},
            "ok",
            "Workers without a build take the work orders; one asked for work 0 s ago.",
            "",
        ),
        (
            CURRENT,
            {"two": 4.0, "three": 4.0},
            "warning",
            "The current build one has no worker: work orders wait. Builds with workers: three, two.",
            "`septet promote BUILD` with one of these, or start a worker of one.",
        ),
        (
            CURRENT,
            {UNVERSIONED: 4.0},
            "warning",
            "The current build one has no worker: work orders wait. Only workers without a build are there.",
            "Start a worker of one: workers with SEPTET_VERSIONING=off get no work orders.",
        ),
        (
            Routing(),
            {"two": 4.0},
            "warning",
            "No build is current, and each worker has one: work orders wait. Builds with workers: two.",
            "`septet promote two`.",
        ),
        (
            Routing(current="one", ramping="two", percentage=10),
            {"one": 4.0},
            "warning",
            "Build two gets 10 % of the work orders and has no worker: these wait. Builds with workers: one.",
            "`septet promote --ramp 0`, or start a worker of two.",
        ),
    ],
    ids=["current", "unversioned", "several others", "others without a build", "none current", "ramping"],
)
def test_whoever_gets_work_orders_has_to_have_a_worker(
    routing: Routing, asked: dict[str, float], status: str, message: str, remedy: str
) -> None:
    """A build that gets work orders without a worker is a warning, with a remedy."""
    check = builds_check("septet", routing, {build: timedelta(seconds=each) for build, each in asked.items()})
    assert (check.name, check.status, check.message, check.remedy) == ("workers", status, message, remedy)


def test_where_nobody_takes_work_orders_a_worker_is_to_be_started() -> None:
    """Without a worker the warning names the queue, because workers may use another queue."""
    check = builds_check("septet", CURRENT, {})
    assert (check.status, check.message) == ("warning", "No worker takes work orders from queue 'septet'.")
    assert check.remedy == f"{START_WORKER}, or set SEPTET_TASK_QUEUE to the queue of your workers."
