"""Read the Temporal server's lists of workflows page by page, without closed runs that a reset replaced."""

import asyncio
import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from temporalio.client import Client, WorkflowExecution

from clients.executions.messages import server_refusals
from septet.contracts.names import ORDER_ID
from septet.errors import InvalidInputError, NotFoundError
from workflows.wire.search_attributes import TAKEN_UP_AGAIN

_MARK_BYTES: Final = 6
_NAME: Final = re.compile(f"{ORDER_ID.pattern}(/pr)?")
_NAMES_AT_ONCE: Final = 500
_OPEN: Final = datetime.max.replace(tzinfo=UTC)


async def page_of(
    client: Client, query: str, *, after: str, limit: int
) -> tuple[list[WorkflowExecution], str | None]:
    """Return a page of the workflows that a query finds, and the `after` of the next page.

    `after` is empty for the first page; the returned `after` is `None` for the last page.

    Raises:
        NotFoundError: This function did not return `after` for an earlier page.
        ServerNotReachedError: The server does not answer, or refuses.
    """
    rows: list[WorkflowExecution] = []
    token = page_token(after)
    with server_refusals():
        while len(rows) < limit:
            results = client.list_workflows(query, page_size=limit - len(rows), next_page_token=token)
            await results.fetch_next_page()
            page = results.current_page or ()
            last = latest(await runs_of(client, (row.id for row in page if row.close_time is not None)))
            rows += [row for row in page if row.id not in last or row.run_id == last[row.id].run_id]
            token = results.next_page_token
            if not token:
                break
    return rows, page_word(token or b"")


def quote_name(name: str) -> str:
    """Return a name in double quotes, as a part of a query for the server.

    Raises:
        InvalidInputError: The name has a double quote or a backslash, which a query cannot contain.
    """
    if '"' in name or "\\" in name:
        message = f"{name!r} cannot be asked for: the server finds no name with a double quote or a backslash."
        raise InvalidInputError(message, remedy="Look at the whole list.")
    return f'"{name}"'


def page_word(token: bytes) -> str | None:
    """Return the server's page token as text for a client; `None` if the token is empty."""
    return base64.urlsafe_b64encode(_mark(token) + token).decode("ascii") if token else None


def page_token(word: str) -> bytes | None:
    """Return the server's page token from a text that `page_word` returned; `None` for an empty text.

    Other texts are refused here, because the server would report an internal failure.

    Raises:
        NotFoundError: `page_word` did not return the text.
    """
    if not word:
        return None
    try:
        content = base64.b64decode(word, altchars=b"-_", validate=True)
    except ValueError:
        content = b""
    mark, token = content[:_MARK_BYTES], content[_MARK_BYTES:]
    if not token or mark != _mark(token):
        message = f"{word[:80]!r} is not the `next` of a list."
        raise NotFoundError(message, remedy="Give the `next` of the page before, unchanged.")
    return token


async def taken_up_again(client: Client, query: str) -> dict[str, WorkflowExecution]:
    """Return the last run of each work order that was reset, by the work order's id.

    `query` is a further condition that begins with `AND`, or empty.

    Raises:
        RPCError: The server refused.
    """
    filters = f'WorkflowType="WorkOrder" AND {TAKEN_UP_AGAIN.name}=true{query}'
    return latest([run async for run in client.list_workflows(filters)])


async def count_before(client: Client, last: Mapping[str, WorkflowExecution], query: str) -> int:
    """Count the earlier runs of the workflows in `last`; only runs that match `query` count.

    Raises:
        RPCError: The server refused.
    """
    names = list(last)
    parts = (names[at : at + _NAMES_AT_ONCE] for at in range(0, len(names), _NAMES_AT_ONCE))
    queries = (
        f"{filters} AND RunId NOT IN ({', '.join(repr(last[name].run_id) for name in part)}){query}"
        for part in parts
        for filters in _name_filters(part)
    )
    return sum(found.count for found in await asyncio.gather(*map(client.count_workflows, queries)))


async def runs_of(client: Client, names: Iterable[str]) -> list[WorkflowExecution]:
    """Return all runs of the workflows with these ids; invalid ids are ignored.

    Raises:
        RPCError: The server refused.
    """

    async def runs_at(part: str) -> list[WorkflowExecution]:
        return [run async for run in client.list_workflows(part)]

    return [run for runs in await asyncio.gather(*map(runs_at, _name_filters(names))) for run in runs]


def latest(runs: Iterable[WorkflowExecution]) -> dict[str, WorkflowExecution]:
    """Return the last run of each workflow, by the workflow's id."""
    last: dict[str, WorkflowExecution] = {}
    for run in runs:
        if run.id not in last or (run.close_time or _OPEN) > (last[run.id].close_time or _OPEN):
            last[run.id] = run
    return last


def _mark(token: bytes) -> bytes:
    return sha256(token).digest()[:_MARK_BYTES]


def _name_filters(names: Iterable[str]) -> Iterator[str]:
    ours = sorted({name for name in names if _NAME.fullmatch(name)})
    for at in range(0, len(ours), _NAMES_AT_ONCE):
        yield f"WorkflowId IN ({', '.join(map(quote_name, ours[at : at + _NAMES_AT_ONCE]))})"
