"""`septet logs`: what the agents of a work order said and did, from the files of this host."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from clients.cli.reply import Reply, reply
from clients.runs_on_disk import runs_of
from clients.work_orders import WorkOrders
from septet.contracts.names import Status
from septet.errors import NotFoundError
from septet.settings import Settings, load_settings
from septet.state import StateDir
from workers.connection import connect

_LOOK_SECONDS: Final = 0.3
_TEXT_SHOWN: Final = 2000


def logs(order_id: str, *, follow: bool, raw: bool, address: str | None, as_json: bool) -> None:
    """Show the streams of all runs, oldest first; with `follow`, go on until the work order is closed."""

    async def work() -> Reply:
        settings = load_settings()
        state = StateDir(settings.state_dir)
        shown: dict[Path, int] = {}
        entries: list[dict[str, Any]] = []
        while True:
            ended = not follow or await _is_closed(settings, order_id, address)
            for run in runs_of(state, order_id):
                path = Path(run["folder"]) / "stdout.jsonl"
                new = _new_bytes(path, shown)
                if raw:
                    sys.stdout.buffer.write(new)
                    continue
                found = list(_entries(run["run"], new))
                entries += found
                if follow or not as_json:
                    _print(found, as_json=as_json)
            sys.stdout.flush()
            if ended:
                break
            await asyncio.sleep(_LOOK_SECONDS)
        if not shown:
            raise NotFoundError(
                f"This host has no runs of {order_id}.", remedy="Ask the host that runs its steps."
            )
        return Reply({"log_entries": [] if follow else entries})

    reply(work, as_json=as_json and not raw and not follow)


async def _is_closed(settings: Settings, order_id: str, address: str | None) -> bool:
    task = await WorkOrders(await connect(settings, address=address), settings.task_queue).task(order_id)
    return task.status not in {Status.RUNNING, Status.PENDING, Status.WAITING}


def _new_bytes(path: Path, shown: dict[Path, int]) -> bytes:
    """Return what a stream has got since the last look, up to its last whole line."""
    try:
        with path.open("rb") as stream:
            stream.seek(shown.get(path, 0))
            whole, newline, _ = stream.read().rpartition(b"\n")
    except FileNotFoundError:
        return b""
    new = whole + newline
    shown[path] = shown.get(path, 0) + len(new)
    return new


def _entries(run: str, stream: bytes) -> Iterator[dict[str, Any]]:
    for line in stream.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            for kind, text in _said(event):
                yield {"run": run, "kind": kind, "text": text[:_TEXT_SHOWN]}


def _said(event: dict[str, Any]) -> Iterator[tuple[str, str]]:
    message = event.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else []:
        match block.get("type"):
            case "text":
                yield "text", str(block.get("text", ""))
            case "tool_use":
                yield "tool_call", f"{block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}"
            case "tool_result":
                yield "tool_result", str(block.get("content", ""))
            case _:
                pass
    if event.get("type") == "result":
        yield "result", str(event.get("result") or event.get("errors") or "")


def _print(entries: list[dict[str, Any]], *, as_json: bool) -> None:
    for entry in entries:
        line = (
            json.dumps(entry, ensure_ascii=False)
            if as_json
            else f"{entry['run']}  {entry['kind']}: {entry['text']}"
        )
        sys.stdout.write(line + "\n")
