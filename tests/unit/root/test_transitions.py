from itertools import product

import pytest

from septet.contracts.names import Stage, Status
from septet.contracts.task import Task
from septet.contracts.transitions import ALLOWED, Target, allowed, check_move
from septet.errors import RefusedTransitionError

EVERY_MOVE = [
    (status, stage, to) for (status, stage), to in product(product(Status, Stage), Target)
]  # fmt: skip
MAY = {
    ("pending", "collected"): {"triaged", "blocked", "cancelled"},
    ("pending", "triaged"): {"collected", "executing", "blocked", "cancelled"},
    ("pending", "blocked"): {"collected", "triaged", "cancelled"},
    ("running", "executing"): {"blocked", "cancelled"},
    ("waiting", "executing"): {"blocked", "cancelled"},
    ("waiting", "blocked"): {"executing", "cancelled"},
    ("completed", "review"): {"done", "executing", "blocked"},
    ("completed", "blocked"): {"executing", "done"},
    ("failed", "blocked"): {"executing", "cancelled"},
}


@pytest.mark.parametrize(("status", "stage", "to"), EVERY_MOVE)
def test_a_move_is_allowed_by_the_table_or_refused_with_what_is(status: Status, stage: Stage, to: Target) -> None:
    """Of every status, stage and target: it may move, or the refusal names each target that it may move to."""
    task = Task(id="wo-1", status=status, stage=stage)
    may = MAY.get((status.value, stage.value), set())
    assert set(allowed(status, stage)) == may
    if to.value in may:
        check_move(task, to)
        return
    with pytest.raises(RefusedTransitionError) as refused:
        check_move(task, to)
    assert f"cannot move to {to.value}" in refused.value.message
    assert refused.value.remedy == f"From here it can move to: {', '.join(allowed(status, stage)) or 'nowhere'}."


def test_nothing_moves_to_where_it_is() -> None:
    """No entry of the table leads back to its own stage."""
    assert [key for key, targets in ALLOWED.items() if key[1].value in targets] == []
