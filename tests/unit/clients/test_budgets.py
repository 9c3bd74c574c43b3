"""Requests about budgets that are refused before any call to the server, and the printed forms of a budget."""

from pathlib import Path

import pytest
from fakes.unreached import unreached

from clients.cli.decide.budgets import show_budget
from clients.temporal.budgets import whole_scope
from septet.budgets.account import AccountView, LimitCall
from septet.errors import InvalidInputError


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("day", "day"),
        ("Day", "day"),
        ("wo-42", "order/wo-42"),
        ("order/wo-42", "order/wo-42"),
        ("project/o/r", "project/o/r"),
        ("pipeline/pl-1", "pipeline/pl-1"),
    ],
)
def test_a_name_alone_is_a_work_orders_budget(name: str, scope: str) -> None:
    """A name without a prefix is a work order's budget, except `day` in any case."""
    assert whole_scope(name) == scope


@pytest.mark.parametrize("name", ["o/r", "projects/o/r", "day/", "wo 42", "project/", ""])
async def test_a_budget_that_nobody_would_ask_is_refused(name: str, tmp_path: Path) -> None:
    """A wrong name creates no account, and the remedy names the valid forms."""
    budgets = (await unreached(tmp_path)).budgets
    with pytest.raises(InvalidInputError, match="is not the name of a budget") as refused:
        await budgets.set(name, LimitCall(limit="5usd"))
    assert "project/o/r" in refused.value.remedy


async def test_a_step_that_there_is_not_is_refused(tmp_path: Path) -> None:
    """A limit of an unknown step is refused, and the remedy names the steps."""
    budgets = (await unreached(tmp_path)).budgets
    call = LimitCall(limit="5usd", step="implement-plan")
    for change in (budgets.set, budgets.raise_limit):
        with pytest.raises(InvalidInputError, match="'implement-plan' is not a step") as refused:
            await change("day", call)
        assert "implement_plan" in refused.value.remedy
        assert "rework" in refused.value.remedy


def test_who_is_called_needs_no_other_raise(capsys: pytest.CaptureFixture[str]) -> None:
    """After a raise the called work orders are shown as continuing, without a further command."""
    view = AccountView(scope="order/wo-1", limit="0.53usd", waiting=("wo-1",), waiting_count=1)
    show_budget(view)
    printed = capsys.readouterr().out
    assert "continuing    wo-1" in printed.splitlines()
    assert "To continue" not in printed
    assert "waiting" not in printed
    show_budget(view.model_copy(update={"remedy": "`septet budget raise order/wo-1 5usd`"}))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["waiting       wo-1", "To continue, run `septet budget raise order/wo-1 5usd`."]
