"""Print budgets for people."""

from typing import Final

from rich.table import Table
from rich.text import Text

from clients.cli.render.ages import span_of
from clients.cli.terminal.console import console
from septet.contracts.amounts import Spending, describe_spending, parse_limit, usd_text
from septet.contracts.budget import AccountView
from septet.contracts.replies import BudgetsReply, RaiseReply
from septet.system.preview import printable
from septet.system.text import count_noun

_NO_LIMIT: Final = "no limit"
_STEPS_ALONE: Final = "limits of steps"
_DAYS_SHOWN: Final = 7


def show_budgets(page: BudgetsReply) -> None:
    """Print each budget on a line."""
    if not page.budgets:
        console().print("No budget is set. `septet budget set day 50usd` sets one.")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("budget", "used", "running", "waiting"):
        table.add_column(name, justify="right" if name in {"running", "waiting"} else "left")
    for each in page.budgets:
        table.add_row(printable(each.scope), _share_of_limit(each), str(each.running), str(each.waiting_count))
    console().print(table)
    console().print(Text("A budget counts what agents use after it is set.", style="dim"), soft_wrap=True)
    if page.next is not None:
        console().print(Text(f"and more: --after {page.next}", style="dim"), soft_wrap=True)


def show_raise(reply: RaiseReply, expected_limit: str) -> None:
    """Print a budget after a request to raise it, and whether it was raised."""
    if not reply.is_raised:
        console().print(f"Nothing was added: the limit is no longer {expected_limit}.")
    show_budget(reply.budget)


def show_budget(view: AccountView) -> None:
    """Print one budget: its use by step and by day, and the waiting work orders."""
    out = console()
    out.print(Text.assemble((printable(view.scope), "bold"), f"  {_share_of_limit(view)}"), soft_wrap=True)
    counts = "" if view.total.turns else "  (it counts from now on)"
    out.print(f"total         {describe_use(view.total)}{counts}", soft_wrap=True)
    for step in {**view.by_step, **view.step_limits}:
        use = describe_use(view.by_step.get(step, Spending()))
        out.print(Text(printable(f"{step:<21} {use}{_limit_of_step(view, step)}")), soft_wrap=True)
    for day, spent in view.days[-_DAYS_SHOWN:]:
        out.print(f"{day}    {describe_use(spent)}", soft_wrap=True)
    if view.waiting:
        more = view.waiting_count - len(view.waiting)
        names = ", ".join(view.waiting) + (f" and {more} more" if more else "")
        if not view.remedy:
            out.print(Text(printable(f"continuing    {names}")), soft_wrap=True)
            return
        out.print(Text(printable(f"waiting       {names}"), style="yellow"), soft_wrap=True)
        out.print(f"To continue, run {view.remedy}.", soft_wrap=True)


def describe_use(use: Spending) -> str:
    """Return a use in words: `1.20 USD, 34,000 tokens, 12.5 min, 7 agent runs`."""
    runs = count_noun(use.turns, "agent run")
    text = f"{usd_text(use.usd)} USD, {use.tokens:,} tokens, {span_of(use.seconds)}, {runs}"
    return f"{text} (without a cost: {use.unpriced})" if use.unpriced else text


def _limit_of_step(view: AccountView, step: str) -> str:
    if step not in view.step_limits:
        return ""
    limit = parse_limit(view.step_limits[step])
    today = describe_spending(view.today_by_step.get(step, Spending()), limit)
    return f", limit {limit}" + (f": {today} today" if limit.daily else "")


def _share_of_limit(view: AccountView) -> str:
    if not view.limit:
        return _STEPS_ALONE if view.step_limits else _NO_LIMIT
    limit = parse_limit(view.limit)
    return f"{describe_spending(view.spent, limit)}{' today' if limit.daily else ''}"
