"""A server that goes away while somebody waits for its work: they are told once, and go on when it is back."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from temporalio.service import RPCError

from clients.temporal.refusals import is_away, server_refusal
from septet.errors import ServerNotReachedError

Seen = TypeVar("Seen")
PATIENCE: Final = timedelta(minutes=15)
"""A server that is moved or upgraded is back by then."""
_AGAIN_SECONDS: Final = 1.0
_RETRIES_SECONDS: Final = 30.0
"""What has waited for longer was answered meanwhile: the SDK itself gives up after ten seconds."""


@dataclass(slots=True)
class Absence:
    """The time in which a server does not answer."""

    subject: str
    """What is waited for: the id of a work order or pipeline."""
    watch: str = ""
    """The command that looks at it again; by default `septet watch` with the subject."""
    patience: timedelta = PATIENCE
    _since: datetime | None = None
    _ends: float = 0.0
    """When patience ends, by the clock that does not jump."""

    @property
    def lasts(self) -> bool:
        """Whether the server did not answer when it was asked last."""
        return self._since is not None

    def end(self) -> None:
        """Note that the server has answered."""
        self._since = None

    def bear(self, error: ServerNotReachedError | RPCError) -> str:
        """Return what is said while the server is away: the same words until it is back.

        Raises:
            ServerNotReachedError: It refuses, or has been away for too long.
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
        raise ServerNotReachedError(
            message, remedy=f"Watch it again: {self.watch or f'septet watch {self.subject}'}"
        ) from error


async def outlast(
    looks: Callable[[], AsyncGenerator[Seen, None]], absence: Absence, tell: Callable[[str], None]
) -> AsyncGenerator[Seen, None]:
    """Yield what is seen, over all absences of the server.

    Args:
        looks: Begins to look; it is called again after an absence.
        absence: How long one may last.
        tell: Takes what is to be said of an absence, once for each.

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
        await asyncio.sleep(_AGAIN_SECONDS)


async def outlast_wait(wait: Callable[[], Awaitable[Seen]], absence: Absence, tell: Callable[[str], None]) -> Seen:
    """Return what is waited for, over all absences of the server; as `outlast`."""

    async def looks() -> AsyncGenerator[Seen, None]:
        yield await wait()

    async with aclosing(outlast(looks, absence, tell)) as seen:
        return await anext(seen)
