"""`septet logs`: what the agents of a work order said and did, from the files of this host."""

import asyncio
import sys
from collections.abc import Iterator
from typing import Final

from clients.agent_logs import AgentLogs
from clients.cli.reply import Reply, print_json, reply
from clients.operations import Operations, connected
from septet.contracts.replies import LogEntry, LogsReply
from septet.errors import NotFoundError
from septet.settings import Settings, load_settings
from septet.state import StateDir
from septet.system.preview import printable

_LOOK_SECONDS: Final = 0.3


def logs(order_id: str, *, follow: bool, raw: bool, address: str | None, as_json: bool) -> None:
    """Show the streams of all runs, oldest first; with `follow`, go on until the work order is closed."""

    async def work() -> Reply:
        settings = load_settings()
        if as_json and not raw and not follow:
            return Reply.of(await _all(settings, order_id, address), lambda: None)
        found = AgentLogs(StateDir(settings.state_dir), order_id)
        operations = await connected(settings, address) if follow else None
        while True:
            over = operations is None or await _is_closed(operations, order_id)
            if raw:
                sys.stdout.buffer.writelines(found.new_bytes())
            else:
                _print(found.new_entries(), as_json=as_json)
            sys.stdout.flush()
            if over:
                break
            await asyncio.sleep(_LOOK_SECONDS)
        found.must_exist()
        return Reply(told=True)

    reply(work, as_json=as_json and not raw)


async def _all(settings: Settings, order_id: str, address: str | None) -> LogsReply:
    """Return all entries as the other faces do; the server is asked where this host's disk knows of no run."""
    found = AgentLogs(StateDir(settings.state_dir), order_id)
    entries = tuple(found.new_entries())
    try:
        found.must_exist()
    except NotFoundError:
        return await (await connected(settings, address)).logs(order_id)
    return LogsReply(log_entries=entries, total=len(entries))


async def _is_closed(operations: Operations, order_id: str) -> bool:
    return (await operations.orders.task(order_id)).is_closed


def _print(entries: Iterator[LogEntry], *, as_json: bool) -> None:
    for entry in entries:
        if as_json:
            print_json(entry.model_dump(mode="json"))
            continue
        tool = f" {entry.tool}" if entry.tool else ""
        text = entry.text.rstrip().replace("\n", "\n    ")
        sys.stdout.write(printable(f"{entry.run}  {entry.kind}{tool}: {text}\n"))
