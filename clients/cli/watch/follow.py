"""Commands that follow a work order: `watch` shows its steps live, `logs` shows what its agents did."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from clients.cli.options import Server
from clients.cli.render.live_view import LiveView
from clients.cli.render.logs import LogText, show_network
from clients.cli.render.task_reply import failure_of
from clients.cli.render.watch import show_end
from clients.cli.terminal.console import console
from clients.cli.terminal.output import notify, print_json
from clients.cli.terminal.reply import CommandReply
from clients.cli.terminal.serving import hide_login_keys
from clients.cli.watch.options import LogsOptions, OneOrderOptions
from clients.disk.agent_logs import AgentLogs
from clients.disk.runs import network_of
from clients.operations.absence import PATIENCE, Absence, outlast_wait
from septet.contracts.host_files import LogEntry
from septet.contracts.replies import LogsReply, TaskReply
from septet.errors import NotFoundError, ServerNotReachedError, UsageError
from septet.settings import load_settings
from septet.state import StateDir


async def watch(options: OneOrderOptions) -> CommandReply:
    """Watch a work order live until it ends: steps, tool calls, tokens, plan and changes."""
    operations = await options.server.connect()
    if options.server.as_json:
        looks = operations.reading.watch(options.order_id, patience=PATIENCE).looks()
        last = await anext(looks)
        while not last.task.is_closed:
            print_json(last.model_dump(mode="json"))
            last = await anext(looks)
        return CommandReply.from_reply(last, lambda: None, failure_of(last.task))
    out = console()
    last = await LiveView(operations, options.order_id, asks=sys.stdin.isatty(), out=out).follow()
    return CommandReply.from_reply(TaskReply(task=last.task), lambda: show_end(last, out), failure_of(last.task))


async def logs(options: LogsOptions) -> CommandReply:
    """Show what the agents of a work order said and did."""
    settings = load_settings()
    hide_login_keys(settings)
    if options.network:
        if options.follow or options.raw:
            remedy = f"Run septet logs {options.order_id} --network, and run it again for new requests."
            raise UsageError("--network shows the requests so far, and nothing else.", remedy=remedy)
        answer = network_of(StateDir(settings.state_dir), options.order_id, limit=None)
        if not answer.total:  # the server knows whether the work order exists
            answer = await (await options.server.connect()).reading.network(options.order_id, limit=None)
        return CommandReply.from_reply(answer, lambda: show_network(options.order_id, answer))
    agent_logs = AgentLogs(StateDir(settings.state_dir), options.order_id)
    if options.server.as_json and not options.raw and not options.follow:
        return CommandReply.from_reply(await _all_entries(agent_logs, options.server), lambda: None)
    log = LogText(agent_logs.state, options.order_id, options.structured)
    absence = Absence(options.order_id, watch=f"septet logs --follow {options.order_id}")
    operations = await options.server.connect() if options.follow else None
    wait = partial(operations.orders.wait_for_end, options.order_id) if operations is not None else None
    end = asyncio.create_task(outlast_wait(wait, absence, notify)) if wait is not None else None
    while True:
        over = end is None or end.done()  # before the read, so that the last read is complete
        if options.raw:
            sys.stdout.buffer.writelines(agent_logs.new_bytes())
        else:
            _print_entries(agent_logs.new_entries(), None if options.server.as_json else log)
        sys.stdout.flush()
        if end is None or over:
            break
        await asyncio.wait([end], timeout=0.3)
    if end is not None:
        await end
    try:
        agent_logs.must_exist()
    except NotFoundError:
        with suppress(ServerNotReachedError):  # the server knows whether the work order exists
            await (await options.server.connect()).reading.logs(options.order_id)
        raise
    return CommandReply(is_printed=True)


async def _all_entries(agent_logs: AgentLogs, server: Server) -> LogsReply:
    """Return all log entries; the server is called only if this host has no run of the work order."""
    entries = tuple(agent_logs.new_entries())
    try:
        agent_logs.must_exist()
    except NotFoundError:
        return await (await server.connect()).reading.logs(agent_logs.order_id)
    return LogsReply(log_entries=entries, total=len(entries))


def _print_entries(entries: "Iterator[LogEntry]", log: "LogText | None") -> None:
    """Print log entries for people; if `log` is `None`, print each entry as JSON on a line."""
    for entry in entries:
        if log is None:
            print_json(entry.model_dump(mode="json"))
        else:
            sys.stdout.writelines(f"{line}\n" for line in log.lines(entry))
