"""What `septet doctor` says of keys that are in use, and of what began before there were keys."""

from clients.cli.seal_checks import keys_check, unsealed_check
from clients.temporal.seals import SCHEDULE, SealUse

OLD, NEW = frozenset({"old"}), frozenset({"new"})


def test_a_key_that_nothing_open_needs_is_not_named() -> None:
    """Where all that is open began with the key that seals, the others are for what closed."""
    check = keys_check([SealUse("wo-1", "WorkOrder", NEW), SealUse("septet-intake-a", SCHEDULE, NEW)], "new")
    assert (check.status, check.message) == ("ok", "new seals. All open work began with new.")


def test_what_keeps_an_older_key_in_use_is_named() -> None:
    """Workflows and schedules by their ids, some of many; nothing is wrong with that."""
    budgets = [SealUse(f"septet-budget/{each}", "Account", OLD | NEW) for each in range(7)]
    check = keys_check([*budgets, SealUse("wo-1", "WorkOrder", NEW)], "new")
    names = ", ".join(f"septet-budget/{each}" for each in range(5))
    assert check.status == "ok"
    assert check.message == f"new seals. Keep these keys, with which open work began: old ({names} and 2 more)."


def test_a_key_that_is_missing_is_a_warning() -> None:
    """What it holds up is named, with what helps."""
    uses = [SealUse("wo-1", "WorkOrder", OLD, OLD), SealUse("septet-janitor-h1", SCHEDULE, OLD, OLD)]
    check = keys_check(uses, "new")
    assert (check.status, check.message) == (
        "warning",
        "new seals. These keys are missing here: old (septet-janitor-h1, wo-1).",
    )
    assert "temporal schedule delete" in check.remedy


def test_what_began_unsealed_is_counted() -> None:
    """Schedules apart from workflows: they do not stand still, but what they start is refused."""
    nothing = frozenset[str]()
    uses = [
        SealUse("wo-1", "WorkOrder", nothing, began_unsealed=True),
        SealUse("septet-board", "Board", nothing, began_unsealed=True),
        SealUse("septet-intake-a", SCHEDULE, nothing, began_unsealed=True),
        SealUse("wo-2", "WorkOrder", NEW),
    ]
    check = unsealed_check(uses)
    assert check.status == "warning"
    assert "1 open work orders and pipelines (wo-1) and 1 other workflows began unsealed" in check.message
    assert check.message.endswith("They also refuse what 1 schedules start: septet-intake-a.")
    assert unsealed_check(uses[-1:]).status == "ok"
