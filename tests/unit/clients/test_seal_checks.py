"""The findings of `septet doctor` about keys in use, and about work that began unsealed."""

from dataclasses import asdict

from clients.cli.doctor.server_checks import keys_check, unsealed_check
from clients.executions.seals import SCHEDULE, SealUse

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


def test_a_key_that_opens_some_and_is_missing_for_others_names_each_once() -> None:
    """Keys of two teams may have the same id, so opened and closed uses are listed apart."""
    check = keys_check([SealUse("wo-1", "WorkOrder", OLD), SealUse("wo-2", "WorkOrder", OLD, OLD)], "new")
    assert check.message == (
        "new seals. Keep these keys, with which open work began: old (wo-1). These keys are missing here: old (wo-2)."
    )


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
