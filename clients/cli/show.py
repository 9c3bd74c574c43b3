"""Commands that show work orders as they are now: one, its plan, its changes, a list, or all by stage."""

import re
from datetime import timedelta
from typing import Annotated, Final, Literal

from clients.cli import options as given
from clients.cli.options import completed_by, option
from clients.cli.pager import page_diff, page_plan
from clients.cli.render.board import follow_board, show_board
from clients.cli.render.detail import show_detail
from clients.cli.render.listing import show_list
from clients.cli.render.network import show_refusals
from clients.cli.render.steps import show_rounds, show_steps
from clients.cli.render.work_order import notes_on
from clients.cli.reply import CommandReply
from clients.cli.server import SERVER, Server
from clients.cli.task_reply import reply_of_task
from clients.starting.repository_path import whole_path
from clients.temporal.work_orders import OrderFilter
from septet.contracts.names import Status
from septet.errors import UsageError

_States = Literal["open", "pending", "running", "waiting", "completed", "failed", "cancelled"]
_AGE: Final = re.compile(r"(?P<number>[1-9][0-9]{0,4})(?P<unit>[mhdw])")
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DONE_SHOWN: Final = timedelta(days=7)


async def show(order_id: given.Id, /, *, server: Server = SERVER) -> CommandReply:
    """Show one work order: why it waits, its progress and its result."""
    operations = await server.connect()
    detail = await operations.reading.detail(order_id)
    under_way = None if server.as_json else await operations.reading.step_under_way(detail.task)
    return CommandReply.from_reply(detail, lambda: show_detail(detail, under_way))


async def steps(order_id: given.Id, /, *, server: Server = SERVER) -> CommandReply:
    """Show each step in full: result, session, tokens, files and warnings."""
    operations = await server.connect()
    answer = await operations.reading.steps(order_id)

    def show_all() -> None:
        show_steps(answer.steps)
        show_rounds(answer.rounds)
        show_refusals(order_id, answer.refused_hosts)

    return CommandReply.from_reply(answer, show_all)


async def plan(order_id: given.Id, /, *, server: Server = SERVER) -> CommandReply:
    """Show the plan of a work order."""
    operations = await server.connect()
    answer = await operations.reading.plan(order_id)
    return CommandReply.from_reply(answer, lambda: page_plan(answer))


async def diff(order_id: given.Id, /, *, server: Server = SERVER) -> CommandReply:
    """Show all changes of a work order so far, paged and in colour on a terminal."""
    operations = await server.connect()
    answer = await operations.reading.diff(order_id)
    return CommandReply.from_reply(answer, lambda: page_diff(answer.diff))


async def refresh(order_id: given.Id, /, *, server: Server = SERVER) -> CommandReply:
    """Check now what a work order waits for: its pull request, host or predecessors."""
    operations = await server.connect()
    return reply_of_task(await operations.decisions.refresh(order_id))


async def list_orders(
    *,
    state: Annotated[_States | None, option(help="Only those in this state.")] = None,
    agent: Annotated[
        str,
        option(
            metavar="AGENT",
            help="Only those of this agent.",
            completer=completed_by("agents"),
        ),
    ] = "",
    repo: Annotated[str, option("--repo", metavar="REPO", help="Only those of this repository.")] = "",
    since: Annotated[
        str,
        option(metavar="AGE", help="Only those started within this time: 30m, 12h, 7d."),
    ] = "",
    after: given.Next = "",
    limit: given.Limit = 30,
    server: Server = SERVER,
) -> CommandReply:
    """List work orders, open ones first."""
    within = _age(since) if since else None
    operations = await server.connect()
    which = OrderFilter(
        status=Status(state) if state and state != "open" else None,
        is_open=state == "open",
        agent=agent,
        repository=whole_path(repo) if repo else "",
        within=within,
    )
    answer = await operations.orders.list(which, limit=limit, after=after)
    is_filtered = any((state, agent, repo, since, after))
    nobody = (
        "" if server.as_json or all(task.is_closed for task in answer.tasks) else await operations.nobody_works()
    )
    notes = notes_on(answer.tasks, nobody)
    return CommandReply.from_reply(answer, lambda: show_list(answer, notes, is_filtered=is_filtered))


async def board(
    *,
    project: Annotated[str | None, option(metavar="PROJECT", help="Only this project.")] = None,
    follow: Annotated[bool, option("--follow", "-f", help="Show it again when it changes.")] = False,
    everything: Annotated[
        bool, option("--all", help="Also show work that was done more than 7 days ago.")
    ] = False,
    after: given.Next = "",
    limit: given.Limit = 500,
    server: Server = SERVER,
) -> CommandReply:
    """Show the work orders by stage."""
    operations = await server.connect()
    recent = None if everything else _DONE_SHOWN
    if follow:
        return await follow_board(operations, project, as_json=server.as_json, closed_within=recent)
    answer = await operations.board.page(project, after=after, limit=limit, closed_within=recent)
    nobody = "" if server.as_json else await operations.nobody_works()
    return CommandReply.from_reply(answer, lambda: show_board(answer, nobody))


def _age(text: str) -> timedelta:
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--since {text} is not an age.", remedy="Write it as 30m, 12h, 7d or 2w.")
    return timedelta(**{_UNITS[match["unit"]]: int(match["number"])})
