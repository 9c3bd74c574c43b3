"""What every route asks with."""

from typing import Annotated, Final

from fastapi import Depends, Query, Request

from clients.operations import Operations

MOST_AT_ONCE: Final = 1000


def _operations(request: Request) -> Operations:
    operations: Operations = request.app.state.operations
    return operations


Asked = Annotated[Operations, Depends(_operations)]
Limit = Annotated[int, Query(ge=1, le=MOST_AT_ONCE)]
