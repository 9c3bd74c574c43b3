"""The parameters that routes have in common, and the operations that they are given."""

from typing import Annotated, Final

from fastapi import Depends, Header, Query, Request

from clients.operations import Operations

MOST_AT_ONCE: Final = 1000


def _operations(request: Request) -> Operations:
    operations: Operations = request.app.state.operations
    return operations


Connected = Annotated[Operations, Depends(_operations)]
Limit = Annotated[int, Query(ge=1, le=MOST_AT_ONCE)]
After = Annotated[str, Query(description="The `next` of the page before.")]
IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        pattern="^[!-~]{0,255}$",
        description=(
            "The same key and body give the same answer again, however often you send them; the work starts once."
        ),
    ),
]
