"""Commands that create work orders: `run` starts a work order, `create` puts one on the board."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from clients.cli.commands import load
from clients.cli.live.task_reply import reply_at_end, reply_of_task, show_new_order
from clients.cli.render.dry_run import show_dry_run
from clients.cli.start.options import CreateOptions, RunOptions
from clients.cli.start.order_input import order_input
from clients.cli.terminal.output import notify
from clients.cli.terminal.reply import CommandReply
from clients.operations.operations import Operations
from clients.starting.issues import reviews_of as issues_in_review
from clients.starting.tracked_issue import check_unread_order
from septet.contracts.order import WorkOrderInput
from septet.errors import GitError, SeptetError
from septet.git.engine.engine import Git
from septet.git.workspace.record import check_order_id
from septet.settings import load_settings
from workers.connection.connection import is_loopback, server_address

_NAMES_SHOWN: Final = 5


async def run(options: RunOptions) -> CommandReply:
    """Start a work order: an issue becomes a pull request."""
    unread = _checked_input(options)
    operations = await options.server.connect()
    new, order_id = await operations.starting.find_order(unread, options.order.id, again=options.again)
    if options.dry_run:
        dry_run = load("clients.operations.dry_run:dry_run")  # imported only for a dry run
        plan = await dry_run(operations, new, order_id, load_settings(), again=options.again)
        return CommandReply.from_reply(plan, lambda: show_dry_run(plan))
    if options.server.as_json:
        answer = await operations.starting.start(new, order_id, again=options.again)
        if reviews := await reviews_of(operations, new.repository, (new.issue,)):
            notify(reviews)
        return await reply_at_end(operations, answer, wait=options.wait, as_json=True)
    notice = asyncio.create_task(_notice(operations, new))
    task, estimate = await operations.starting.begin(new, order_id, again=options.again)
    return await show_new_order(operations, task, estimate, notice, wait=options.wait)


async def create(options: CreateOptions) -> CommandReply:
    """Put a work order on the board; it starts later."""
    new = _checked_input(options)
    operations = await options.server.connect()
    return reply_of_task(await operations.starting.start(new, options.order.id, again=options.again))


def _checked_input(options: RunOptions | CreateOptions) -> WorkOrderInput:
    """Return a new work order's input, checked for mistakes before any server is called."""
    order = order_input(options)
    if options.order.id is not None:
        check_order_id(options.order.id)
    settings = load_settings()
    check_unread_order(order, settings, is_here=is_loopback(server_address(settings, options.server.address)))
    return order


async def _notice(operations: Operations, order: WorkOrderInput) -> str:
    """Return the notices on a new work order: reviews, uncommitted changes, unlimited agents; or an empty text."""
    reviews, uncommitted = await asyncio.gather(
        reviews_of(operations, order.repository, (order.issue,)),
        asyncio.to_thread(_uncommitted_text, order.repository),
    )
    unlimited = load("clients.starting.unlimited:find_unlimited")(order)  # its imports come after the id
    return "\n".join(filter(None, (reviews, uncommitted, unlimited)))


async def reviews_of(operations: Operations, repository: str, issues: Iterable[int | None]) -> str:
    """Return a notice of issues that have a pull request in review; empty if the server does not answer."""
    with suppress(SeptetError):
        return await issues_in_review(operations.orders, repository, [each for each in issues if each is not None])
    return ""


def _uncommitted_text(repository: str) -> str:
    """Return a notice of a checkout's uncommitted changes, which the agent will not see; or an empty text."""
    changes = uncommitted_changes(Path(repository))
    if not changes:
        return ""
    names = ", ".join(changes[:_NAMES_SHOWN]) + (", …" if len(changes) > _NAMES_SHOWN else "")
    count = f"{len(changes)} uncommitted change{'s' * (len(changes) != 1)}"
    return f"Not included: {count} in {repository} ({names}). Commit to include them."


def uncommitted_changes(path: Path) -> list[str]:
    """Return the files of a checkout that differ from its last commit; none if git cannot report them."""
    if not path.is_absolute() or not (path / ".git").is_dir():
        return []
    try:
        git = Git(path / ".git", path, load_settings().git_env)
        printed = git.run("status", "--porcelain", "-z", "--untracked-files=normal")
    except GitError:
        return []
    entries = printed.decode("utf-8", "replace").split("\0")
    names, at = [], 0
    while at < len(entries) and entries[at]:
        names.append(entries[at][3:])
        at += 2 if entries[at][0] in "RC" else 1  # the old name follows
    return names
