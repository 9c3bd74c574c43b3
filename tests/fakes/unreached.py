"""Operations on a server that does not run: each call is refused at once."""

import errno
import os
from pathlib import Path

from fakes.septet_command import free_port
from temporalio.client import Client, RetryConfig
from temporalio.service import RPCError, RPCStatusCode

from clients.operations.operations import LazyPart, Operations
from clients.temporal.board import BoardRows
from clients.temporal.work_orders import WorkOrders
from septet.state import StateDir


def away() -> RPCError:
    return RPCError("away", RPCStatusCode.UNAVAILABLE, b"")


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/state/server.json")


class NoBoard(LazyPart[BoardRows]):
    def __init__(self, error: Exception) -> None:
        self._error = error

    def of(self, operations: Operations) -> BoardRows:
        del operations
        raise self._error


class FullDisk(Operations):
    board = NoBoard(full_disk())


async def unreached(state: Path) -> Operations:
    once = RetryConfig(max_retries=0, max_elapsed_time_millis=1000)
    client = await Client.connect(f"127.0.0.1:{free_port()}", lazy=True, retry_config=once)
    return Operations(WorkOrders(client), StateDir(state), {})
