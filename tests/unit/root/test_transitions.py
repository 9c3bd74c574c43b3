from itertools import product

import pytest

from septet.contracts.decisions import ALLOWED, Target, check_move, targets_of
from septet.contracts.names import Stage, Status
from septet.contracts.task import Task
from septet.errors import RefusedTransitionError


def test_what_the_table_does_not_have_is_refused_with_what_it_has() -> None:
    """For each status, stage and target a task may move, or the refusal names the possible targets."""
    for status, stage, to in product(Status, Stage, Target):
        may, task = targets_of(status, stage), Task(id="wo-1", status=status, stage=stage)
        if to in may:
            check_move(task, to)
            continue
        with pytest.raises(RefusedTransitionError) as refused:
            check_move(task, to)
        assert f"cannot move to {to.value}" in refused.value.message
        expected = f"From here it can move to: {', '.join(may)}." if may else "It is finished and cannot be moved."
        if not may and (status is Status.CANCELLED or task.has_plan_alone):
            expected = "It has ended. `septet retry wo-1` continues it."
        assert refused.value.remedy == expected


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.CANCELLED])
def test_what_is_done_moves_nowhere(status: Status) -> None:
    """A finished task has no target, whether completed or cancelled."""
    assert targets_of(status, Stage.DONE) == ()


def test_nothing_moves_to_where_it_is() -> None:
    """No entry of the table leads back to its own stage."""
    assert [key for key, targets in ALLOWED.items() if key[1].value in targets] == []
