"""The findings of `septet doctor` about keys in use, unsealed work, workers and their builds."""

from dataclasses import asdict
from datetime import timedelta

import pytest

from clients.cli.doctor.server_checks import builds_check, keys_check, unsealed_check
from clients.executions.messages import START_WORKER
from clients.executions.seals import SCHEDULE, SealUse
from workers.builds.deployment import UNVERSIONED, Routing

OLD, NEW = frozenset({"old"}), frozenset({"new"})


def test_what_keeps_an_older_key_in_use_is_named() -> None:
    """An older key in use is named with some of its workflows and schedules, without a warning."""
    budgets = [SealUse(f"septet-budget/{each}", "Account", OLD | NEW) for each in range(7)]
    check = keys_check([*budgets, SealUse("wo-1", "WorkOrder", NEW)], "new")
    names = ", ".join(f"septet-budget/{each}" for each in range(5))
    assert check.status == "ok"
    assert check.message == f"new seals. Keep these keys, with which open work began: old ({names} and 2 more)."


def test_a_key_that_is_missing_is_a_warning() -> None:
    """A missing key is a warning that names the affected work and a remedy."""
    uses = [SealUse("wo-1", "WorkOrder", OLD, OLD), SealUse("septet-janitor-h1", SCHEDULE, OLD, OLD)]
    check = keys_check(uses, "new")
    assert (check.status, check.message) == (
        "warning",
        "new seals. These keys are missing here: old (wo-1, septet-janitor-h1).",
    )
    assert "temporal schedule delete" in check.remedy


JANITOR = SealUse("septet-janitor-h1", SCHEDULE, frozenset(), began_unsealed=True)


def test_schedules_that_began_unsealed_have_remedies_of_their_own() -> None:
    """A janitor's schedule is deleted, and an intake is sealed without the setting."""
    check = unsealed_check([JANITOR])
    assert (
        check.message == "Workers refuse unsealed input. The input of 1 schedule is not sealed: septet-janitor-h1."
    )
    assert "temporal schedule delete --schedule-id" in check.remedy
    assert "SEPTET_SEAL_REQUIRED" not in check.remedy
    intake = unsealed_check([SealUse("septet-intake-a", SCHEDULE, frozenset(), began_unsealed=True)])
    assert "SEPTET_SEAL_REQUIRED" in intake.remedy
    assert "temporal schedule delete" not in intake.remedy


def test_what_began_unsealed_is_counted() -> None:
    """Schedules are counted apart from workflows, and the worker refuses the work that they start."""
    nothing = frozenset[str]()
    uses = [
        SealUse("wo-1", "WorkOrder", nothing, began_unsealed=True),
        SealUse("septet-board", "Board", nothing, began_unsealed=True),
        SealUse("septet-intake-a", SCHEDULE, nothing, began_unsealed=True),
        SealUse("wo-2", "WorkOrder", NEW),
    ]
    check = unsealed_check(uses)
    assert check.status == "warning"
    assert check.message == (
        "Workers refuse unsealed input. 2 workflows began unsealed and stand still: wo-1, septet-board. "
        "The input of 1 schedule is not sealed: septet-intake-a."
    )
    told = [each["id"] for each in asdict(check)["uses"]]
    assert told == ["septet-board", "septet-intake-a", "wo-1"]
    assert unsealed_check(uses[-1:]).status == "ok"


CURRENT = Routing(current="one", is_decided=True)


@pytest.mark.parametrize(
    ("routing", "asked", "status", "message", "remedy"),
    [
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
    ids=["others without a build", "none current", "ramping"],
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
