"""Commands that show a work order, its plan or changes, a list of work orders, the board or the costs."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from rich.table import Table
from rich.text import Text

from clients.cli.render.board import follow_board, show_board, show_list
from clients.cli.render.detail import show_detail, show_rounds, show_steps
from clients.cli.render.logs import show_refusals
from clients.cli.render.tables import span_of
from clients.cli.render.task_reply import reply_of_task
from clients.cli.render.work_order import notes_on
from clients.cli.terminal.console import console, page_diff, page_plan
from clients.cli.terminal.reply import CommandReply
from clients.cli.watch.options import BoardOptions, CostsOptions, OneOrderOptions, OrdersOptions
from clients.starting.repository_path import whole_path
from clients.temporal.work_orders import OrderFilter
from septet.contracts.amounts import Spending, usd_text
from septet.contracts.names import Status
from septet.contracts.replies import CostsReply
from septet.costs.cost_book import first_week
from septet.errors import UsageError
from septet.system.masking import printable
from septet.system.text import count_noun


def show_costs(reply: CostsReply) -> None:
    """Print the costs: a line for each group, and the sum."""
    out = console()
    if not reply.costs:
        out.print("Nothing has been counted yet: that takes up to five minutes, or a completed work order.")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in (reply.by, "USD", "tokens", "time", "agent runs"):
        table.add_column(heading, justify="left" if heading == reply.by else "right", overflow="fold")
    unnamed = "the workers' own" if reply.by == "login" else "not named"
    for group in reply.costs:
        table.add_row(printable(group.name) or unnamed, *_cells(group.use))
    if len(reply.costs) > 1:
        table.add_row(Text("total", style="bold"), *_cells(reply.total))
    out.print(table)
    if reply.scripted:
        out.print(Text("Tokens and dollars of the agent `scripted` are made up.", style="dim"), soft_wrap=True)
    if reply.total.unpriced:
        runs = count_noun(reply.total.unpriced, "agent run")
        out.print(f"{runs} reported no cost; such runs count as 0 USD.", soft_wrap=True)


def _cells(use: Spending) -> tuple[str, ...]:
    return usd_text(use.usd), f"{use.tokens:,}", span_of(use.seconds), str(use.turns)


_AGE: Final = re.compile(r"(?P<number>[1-9][0-9]{0,4})(?P<unit>[mhdw])")
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


async def show(options: OneOrderOptions) -> CommandReply:
    """Show one work order: why it waits, its progress and its result."""
    operations = await options.server.connect()
    detail = await operations.reading.detail(options.order_id)
    under_way = None if options.server.as_json else await operations.reading.step_under_way(detail.task)
    return CommandReply.from_reply(detail, lambda: show_detail(detail, under_way))


async def steps(options: OneOrderOptions) -> CommandReply:
    """Show each step in full: result, session, tokens, files and warnings."""
    operations = await options.server.connect()
    answer = await operations.reading.steps(options.order_id)

    def show_all() -> None:
        show_steps(answer.steps)
        show_rounds(answer.rounds)
        show_refusals(options.order_id, answer.refused_hosts)

    return CommandReply.from_reply(answer, show_all)


async def plan(options: OneOrderOptions) -> CommandReply:
    """Show the plan of a work order."""
    operations = await options.server.connect()
    answer = await operations.reading.plan(options.order_id)
    return CommandReply.from_reply(answer, lambda: page_plan(answer))


async def diff(options: OneOrderOptions) -> CommandReply:
    """Show all changes of a work order so far, paged and in colour on a terminal."""
    operations = await options.server.connect()
    answer = await operations.reading.diff(options.order_id)
    return CommandReply.from_reply(answer, lambda: page_diff(answer.diff))


async def refresh(options: OneOrderOptions) -> CommandReply:
    """Check now what a work order waits for: its pull request, host or predecessors."""
    operations = await options.server.connect()
    return reply_of_task(await operations.decisions.refresh(options.order_id))


async def list_orders(options: OrdersOptions) -> CommandReply:
    """List work orders, open ones first."""
    within = None
    if options.since:
        if (match := _AGE.fullmatch(options.since.strip())) is None:
            message = f"--since {options.since} is not an age."
            raise UsageError(message, remedy="Write it as 30m, 12h, 7d or 2w.")
        within = timedelta(**{_UNITS[match["unit"]]: int(match["number"])})
    operations = await options.server.connect()
    which = OrderFilter(
        status=Status(options.state) if options.state and options.state != "open" else None,
        is_open=options.state == "open",
        agent=options.agent,
        repository=whole_path(options.repo) if options.repo else "",
        within=within,
    )
    answer = await operations.orders.list(which, limit=options.limit, after=options.after)
    is_filtered = any((options.state, options.agent, options.repo, options.since, options.after))
    is_quiet = options.server.as_json or all(task.is_closed for task in answer.tasks)
    nobody = "" if is_quiet else await operations.nobody_works()
    notes = notes_on(answer.tasks, nobody)
    return CommandReply.from_reply(answer, lambda: show_list(answer, notes, is_filtered=is_filtered))


async def board(options: BoardOptions) -> CommandReply:
    """Show the work orders by stage."""
    operations = await options.server.connect()
    recent = None if options.everything else timedelta(days=7)
    if options.follow:
        as_json = options.server.as_json
        return await follow_board(operations, options.project, as_json=as_json, closed_within=recent)
    after, limit = options.after, options.limit
    answer = await operations.board.page(options.project, after=after, limit=limit, closed_within=recent)
    nobody = "" if options.server.as_json else await operations.nobody_works()
    return CommandReply.from_reply(answer, lambda: show_board(answer, nobody))


async def costs(options: CostsOptions) -> CommandReply:
    """Show what agents have cost: dollars, tokens and minutes; costs of the last five minutes may be missing."""
    first_week(options.since, datetime.now(UTC).date())  # before the server is called
    operations = await options.server.connect()
    answer = await operations.costs.show(options.by, options.since, options.project)
    return CommandReply.from_reply(answer, lambda: show_costs(answer))
