from itertools import product

import pytest

from septet.contracts.decisions import Target, check_move, targets_of
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
