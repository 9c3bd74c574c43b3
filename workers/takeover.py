"""A dead worker's activities are taken over at once: its successor on the host need not wait for their time-outs.

While an activity runs, its task token lies in a file that the worker's process holds locked. The kernel gives
the lock back when the process ends, however it ends; then the token serves to fail the attempt, and Temporal
starts the next one, which adopts the agent. A worker that is only stopped or slow keeps its locks.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

_SUFFIX: Final = ".token"

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Tokens(Interceptor):
    """Keeps the token of each activity for as long as it runs."""

    folder: Path

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 -- the SDK's own name
        """Wrap the execution of activities."""
        return _Keeping(next, self.folder)


class _Keeping(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, folder: Path) -> None:
        super().__init__(following)
        self._folder = folder

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401 -- the SDK's own
        """Execute it with its token on disk."""
        with _kept(self._folder, activity.info().task_token):
            return await self.next.execute_activity(input)


async def take_over(client: Client, folder: Path) -> int:
    """Fail the attempts that dead workers of this host have left, and return how many there were.

    A token that the server does not know any more, or that is another server's, is thrown away.
    """
    taken = 0
    for path in _tokens_in(folder):
        with _unheld(path) as token:
            if token is None:
                continue
            error = ApplicationError(
                "The worker that ran it ended.", type="WorkerGone", category=ApplicationErrorCategory.BENIGN
            )
            try:
                await client.get_async_activity_handle(task_token=token).fail(error)
                taken += 1
            except RPCError as refusal:
                _log.info("token_not_taken", token=path.name, error=refusal.message)
            path.unlink(missing_ok=True)
    return taken


def _tokens_in(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{_SUFFIX}"))


@contextlib.contextmanager
def _kept(folder: Path, token: bytes) -> Iterator[None]:
    """Keep a token in a file that this process holds; without one, a successor waits for time-outs."""
    path = folder / f"{secrets.token_hex(8)}{_SUFFIX}"
    try:
        file = _written(path, token)
    except OSError as error:
        _log.warning("token_not_kept", folder=str(folder), error=str(error))
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # on a disk that became read-only it is stale, as after a kill
            path.unlink(missing_ok=True)
        os.close(file)


def _written(path: Path, token: bytes) -> int:
    """Write a token and return its descriptor, which holds it; it is locked before it has its name."""
    draft = path.with_suffix(".draft")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.write(file, token)
        draft.rename(path)
    except OSError:
        draft.unlink(missing_ok=True)
        os.close(file)
        raise
    return file


@contextlib.contextmanager
def _unheld(path: Path) -> Iterator[bytes | None]:
    """Hold a token whose worker is dead, and give what it says; `None` where somebody holds it or it is gone."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield os.read(file, 1 << 16) if path.exists() else None
    except BlockingIOError:
        yield None
    finally:
        os.close(file)
