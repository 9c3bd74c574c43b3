"""`septet budget`: show, set and raise budgets."""

from typing import Final

from rich.table import Table
from rich.text import Text

from clients.cli.decide.options import BudgetsOptions, OneBudgetOptions, RaiseBudgetOptions, SetBudgetOptions
from clients.cli.render.tables import span_of
from clients.cli.terminal.console import console
from clients.cli.terminal.reply import CommandReply
from septet.budgets.account import AccountView, BudgetReply, BudgetsReply, LimitCall, RaiseCall, RaiseReply
from septet.contracts.amounts import Spending, describe_spending, parse_limit, usd_text
from septet.contracts.decisions import parse_decision
from septet.errors import UsageError
from septet.settings import load_settings
from septet.system.masking import printable
from septet.system.text import count_noun

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
    """Print the result of an attempt to raise a budget."""
    if not reply.is_raised:
        console().print(f"Nothing was added: the limit is no longer {expected_limit}.")
    show_budget(reply.budget)


def show_budget(view: AccountView) -> None:
    """Print one budget: what was used in all, by step and by day, and which work orders wait."""
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
    """Return what was used, in words: `1.20 USD, 34,000 tokens, 12.5 min, 7 agent runs`."""
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
        return "limits of steps" if view.step_limits else "no limit"
    limit = parse_limit(view.limit)
    return f"{describe_spending(view.spent, limit)}{' today' if limit.daily else ''}"


async def list_budgets(options: BudgetsOptions) -> CommandReply:
    """Show the budgets: what was used, and how many work orders wait."""
    operations = await options.server.connect()
    answer = await operations.budgets.list(after=options.after, limit=options.limit)
    return CommandReply.from_reply(answer, lambda: show_budgets(answer))


async def show(options: OneBudgetOptions) -> CommandReply:
    """Show one budget: its limit, what was used by step and day, and who waits."""
    operations = await options.server.connect()
    return _reply(await operations.budgets.show(options.budget))


async def set_budget(options: SetBudgetOptions) -> CommandReply:
    """Set a budget, or remove its limit with `none`; work orders that wait for it continue if there is room."""
    call = _limit_call(options)
    operations = await options.server.connect()
    return _reply(await operations.budgets.set(options.budget, call))


async def raise_budget(options: RaiseBudgetOptions) -> CommandReply:
    """Raise a budget by an amount; work orders that wait for it continue."""
    seen = _limit(options.expected_limit, "--expected") if options.expected_limit else ""
    call = RaiseCall(**dict(_limit_call(options)), expected=seen)
    operations = await options.server.connect()
    reply = await operations.budgets.raise_limit(options.budget, call)
    return CommandReply.from_reply(reply, lambda: show_raise(reply, call.expected))


def _limit_call(options: SetBudgetOptions | RaiseBudgetOptions) -> LimitCall:
    if options.amount != "none":
        _limit(options.amount, "AMOUNT")
    return parse_decision(LimitCall, limit=options.amount, step=options.step, who=load_settings().user)


def _limit(text: str, name: str) -> str:
    """Return a limit as Septet writes limits; if the text is no limit, raise an error that names `name`."""
    try:
        return str(parse_limit(text))
    except ValueError as error:
        raise UsageError(f"{name} {error}.") from error


def _reply(answer: BudgetReply) -> CommandReply:
    return CommandReply.from_reply(answer, lambda: show_budget(answer.budget))
