"""Wait while the Temporal server does not answer, and report this once to the person who waits."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from temporalio.service import RPCError

from clients.executions.messages import is_away, server_refusal
from septet.errors import ServerNotReachedError

Seen = TypeVar("Seen")
PATIENCE: Final = timedelta(minutes=15)
"""The longest wait for an absent server: enough time to move or upgrade a server."""
_RETRIES_SECONDS: Final = 30.0
"""A read that lasted longer had an answer before it failed: without a server, a read fails within ten seconds."""


@dataclass(slots=True)
class Absence:
    """The record of whether the Temporal server answers, and of how long to wait for the server."""

    subject: str
    """The id of the work order or pipeline that the caller waits for."""
    watch: str = ""
    """The command that watches the subject again; by default `septet watch` with the subject's id."""
    patience: timedelta = PATIENCE
    _since: datetime | None = None
    _ends: float = 0.0
    """The end of the wait for the server, by the monotonic clock."""

    @property
    def lasts(self) -> bool:
        """Whether the server did not answer the last call."""
        return self._since is not None

    def end(self) -> None:
        """Record that the server has answered."""
        self._since = None

    def bear(self, error: ServerNotReachedError | RPCError) -> str:
        """Return a notice for the person after a failed call; the notice is the same until the server answers.

        Raises:
            ServerNotReachedError: The server refuses, or has been away for too long.
        """
        refusal = error if isinstance(error, ServerNotReachedError) else server_refusal(error)
        if not is_away(error) or not self.patience:
            raise refusal
        if self._since is None:
            self._since, self._ends = datetime.now().astimezone(), time.monotonic() + self.patience.total_seconds()
        told = f"The Temporal server has not answered since {self._since:%H:%M:%S}; "
        if time.monotonic() < self._ends:
            return f"{told}{self.subject} continues when it is back. If `septet up` ran it, start that again."
        message = f"{told}{self.subject} continues with the next `septet up`."
        watch = self.watch or f"septet watch {self.subject}"
        raise ServerNotReachedError(message, remedy=f"Watch it again: {watch}") from error


async def outlast(
    looks: Callable[[], AsyncGenerator[Seen, None]], absence: Absence, tell: Callable[[str], None]
) -> AsyncGenerator[Seen, None]:
    """Yield the items of `looks()`; when the server is absent, report this once by `tell`, and call `looks` again.

    Raises:
        ServerNotReachedError: The server refuses, or has been away for too long.
    """
    clock = asyncio.get_running_loop().time
    while True:
        began = clock()
        try:
            async with aclosing(looks()) as seen:
                async for each in seen:
                    absence.end()
                    yield each
        except (ServerNotReachedError, RPCError) as error:
            if clock() - began > _RETRIES_SECONDS:
                absence.end()
            is_news, words = not absence.lasts, absence.bear(error)
            if is_news:
                tell(words)
        else:
            return
        await asyncio.sleep(1.0)


async def outlast_wait(wait: Callable[[], Awaitable[Seen]], absence: Absence, tell: Callable[[str], None]) -> Seen:
    """Return the result of `wait()`; when the server is absent, report this once by `tell`, and wait again."""

    async def looks() -> AsyncGenerator[Seen, None]:
        yield await wait()

    async with aclosing(outlast(looks, absence, tell)) as seen:
        return await anext(seen)
