"""Commands that show work orders as they are now: one, its plan, its changes, a list, or all by stage."""

import re
import shlex
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final, Literal
from urllib.parse import unquote

import typer

from clients.cli import options as given
from clients.cli.grouped_help import Commands
from clients.cli.reply import CommandReply
from septet.errors import UsageError

if TYPE_CHECKING:
    from clients.operations import Operations

app = Commands()
_States = Literal["open", "pending", "running", "waiting", "completed", "failed", "cancelled"]
_AGE: Final = re.compile(r"(?P<number>[1-9][0-9]{0,4})(?P<unit>[mhdw])")
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DONE_SHOWN: Final = timedelta(days=7)


@app.command()
@given.give_operations
async def show(operations: "Operations", order_id: given.Id, as_json: given.Json = False) -> CommandReply:
    """Show one work order: why it waits, its progress and its result.

    Example: septet show wo-42
    """
    from clients.cli.render.detail import show_detail
    from clients.under_way import step_under_way

    detail = await operations.detail(order_id)
    under_way = None if as_json else await step_under_way(operations, detail.task)
    return CommandReply.from_reply(detail, lambda: show_detail(detail, under_way))


@app.command()
@given.give_operations
async def steps(operations: "Operations", order_id: given.Id) -> CommandReply:
    """Show each step in full: result, session, tokens, files and warnings.

    Example: septet steps wo-42 --json
    """
    from clients.cli.render.network import show_refusals
    from clients.cli.render.steps import show_rounds, show_steps

    answer = await operations.steps(order_id)

    def show_all() -> None:
        show_steps(answer.steps)
        show_rounds(answer.rounds)
        show_refusals(order_id, answer.refused_hosts)

    return CommandReply.from_reply(answer, show_all)


@app.command()
@given.give_operations
async def plan(operations: "Operations", order_id: given.Id) -> CommandReply:
    """Show the plan of a work order.

    Example: septet plan wo-42
    """
    from clients.cli.pager import page_plan

    answer = await operations.plan(order_id)
    return CommandReply.from_reply(answer, lambda: page_plan(answer))


@app.command()
@given.give_operations
async def diff(operations: "Operations", order_id: given.Id) -> CommandReply:
    """Show all changes of a work order so far, paged and in colour on a terminal.

    Example: septet diff wo-42
    """
    from clients.cli.pager import page_diff

    answer = await operations.diff(order_id)
    return CommandReply.from_reply(answer, lambda: page_diff(answer.diff))


@app.command()
@given.give_operations
async def refresh(operations: "Operations", order_id: given.Id) -> CommandReply:
    """Check now what a work order waits for: its pull request, host or predecessors.

    Example: septet refresh wo-42
    """
    from clients.cli.task_reply import reply_of_task

    return reply_of_task(await operations.refresh(order_id))


@app.command(name="open")
@given.give_operations
async def open_page(
    operations: "Operations",
    order_id: given.AnyId = None,
    pull_request: Annotated[bool, typer.Option("--pr", help="Open its pull request instead of its page.")] = False,
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Make a new key: old links end when `septet up` does.")
    ] = False,
) -> CommandReply:
    """Open the board, or a work order, in your browser.

    Example: septet open wo-42
    """
    from clients.cli.browser import open_address, open_page, page_of
    from septet.contracts.pull_request_names import LOCAL_PULL
    from septet.settings import load_settings

    if pull_request and order_id is None:
        raise UsageError("--pr needs a work order.", remedy="Name it: septet open wo-42 --pr")
    task = await operations.orders.get(order_id) if order_id is not None else None
    if task is not None and pull_request:
        if not task.pr_url:
            raise UsageError(f"{order_id} has no pull request yet.", remedy=f"Watch it: septet watch {order_id}")
        if (pull := LOCAL_PULL.fullmatch(task.pr_url)) is not None:
            see = f"septet pr show {pull['number']} --repo {shlex.quote(unquote(pull['path']))}"
            remedy = f"See it: {see}, or with its changes on the page of its work order: septet open {order_id}"
            message = f"The pull request of {order_id} is in a repository on this machine: no address opens it."
            raise UsageError(message, remedy=remedy)
        open_address(task.pr_url)
        return CommandReply({"opened": task.pr_url}, lambda: typer.echo(f"Opened {task.pr_url}"))
    link = page_of(load_settings(), f"/work-orders/{order_id}" if order_id is not None else "/", new_key=new_key)
    open_page(operations.state, link)
    address = link.partition("?")[0]
    return CommandReply({"opened": address}, lambda: typer.echo(f"Opened {address}"))


def _check_since(since: str, **_: object) -> None:
    """See whether the age can be read."""
    if since:
        _age(since)


@app.command(name="list")
@given.check_first(_check_since)
async def list_orders(
    operations: "Operations",
    *,
    state: Annotated[_States | None, typer.Option(help="Only those in this state.")] = None,
    agent: Annotated[
        str,
        typer.Option(
            metavar="AGENT",
            help="Only those of this agent.",
            show_default=False,
            autocompletion=given.complete_agent,
        ),
    ] = "",
    repo: Annotated[
        str, typer.Option("--repo", metavar="REPO", help="Only those of this repository.", show_default=False)
    ] = "",
    since: Annotated[
        str,
        typer.Option(metavar="AGE", help="Only those started within this time: 30m, 12h, 7d.", show_default=False),
    ] = "",
    after: given.Next = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many to list at most.")] = 30,
    as_json: given.Json = False,
) -> CommandReply:
    """List work orders, open ones first.

    Example: septet list --state failed --since 7d
    """
    from clients.cli.render.listing import show_list
    from clients.cli.render.work_order import notes_on
    from clients.repository_path import whole_path
    from septet.contracts.names import Status

    answer = await operations.orders.list(
        Status(state) if state and state != "open" else None,
        is_open=state == "open",
        agent=agent,
        repository=whole_path(repo) if repo else "",
        within=_age(since) if since else None,
        limit=limit,
        after=after,
    )
    is_filtered = any((state, agent, repo, since, after))
    nobody = "" if as_json or all(task.is_closed for task in answer.tasks) else await operations.nobody_works()
    notes = notes_on(answer.tasks, nobody)
    return CommandReply.from_reply(answer, lambda: show_list(answer, notes, is_filtered=is_filtered))


@app.command()
@given.give_operations
async def board(
    operations: "Operations",
    project: Annotated[
        str | None, typer.Option(metavar="PROJECT", help="Only this project.", show_default=False)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show it again when it changes.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show work that was done more than 7 days ago.")
    ] = False,
    after: given.Next = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many to list at most.")] = 500,
    as_json: given.Json = False,
) -> CommandReply:
    """Show the work orders by stage.

    Example: septet board --project o/r --follow
    """
    from clients.cli.render.board import follow_board, show_board

    recent = None if everything else _DONE_SHOWN
    if follow:
        return await follow_board(operations, project, as_json=as_json, closed_within=recent)
    answer = await operations.board.page(project, after=after, limit=limit, closed_within=recent)
    nobody = "" if as_json else await operations.nobody_works()
    return CommandReply.from_reply(answer, lambda: show_board(answer, nobody))


def _age(text: str) -> timedelta:
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--since {text} is not an age.", remedy="Write it as 30m, 12h, 7d or 2w.")
    return timedelta(**{_UNITS[match["unit"]]: int(match["number"])})
