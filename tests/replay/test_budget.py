"""The accounts, pauses and costs that were recorded replay under this version, and so does a work order that waited."""

from pathlib import Path

import pytest
from fakes.budget_histories import BUDGETS
from fakes.recorded import name_of, replay

from workflows.budgets.account import Account
from workflows.budgets.costs import Costs
from workflows.budgets.quota import Quota
from workflows.work_order import WorkOrder

ROOT = Path(__file__).parent / "budget"
HISTORIES = sorted(ROOT.glob("*/*.json"))


@pytest.mark.parametrize("path", HISTORIES, ids=name_of)
async def test_every_recorded_budget_replays(path: Path) -> None:
    """What an earlier version began goes on under this one."""
    await replay(path, [WorkOrder, Account, Quota, Costs])


def test_every_way_of_a_budget_is_recorded() -> None:
    """Each way has its history, in its version's folder; `make histories` records what is missing."""
    assert sorted(ROOT.rglob("*.json")) == HISTORIES
    assert set(BUDGETS) <= {path.stem for path in HISTORIES}
