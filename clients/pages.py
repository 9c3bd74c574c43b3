"""Pages of the server's index without what was taken up again: a run that was reset stays there as it closed."""

from collections.abc import Sequence

from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError

from clients._refused import refused
from clients._runs import latest, runs_of
from clients.page_word import page_token, page_word


async def page_of(
    client: Client, query: str, *, after: str, limit: int
) -> tuple[list[WorkflowExecution], str | None]:
    """Return a page of what a query finds, and the word at which the next one goes on: `None` after the last.

    Args:
        client: Where.
        query: In Temporal's list filter.
        after: The word of the page before; empty for the first one.
        limit: How many rows at the most.

    Raises:
        NotFoundError: `after` is no such word.
        ServerNotReachedError: The server refused.
    """
    found = client.list_workflows(query, page_size=limit, next_page_token=page_token(after))
    try:
        await found.fetch_next_page()
        rows = await _latest(client, found.current_page or ())
    except RPCError as error:
        raise refused(error) from error
    return rows, page_word(found.next_page_token or b"")


async def _latest(client: Client, rows: Sequence[WorkflowExecution]) -> list[WorkflowExecution]:
    """Return the rows that no run has come after; the server is asked for closed ones alone."""
    last = latest(await runs_of(client, (row.id for row in rows if row.close_time is not None)))
    return [row for row in rows if row.id not in last or row.run_id == last[row.id].run_id]
