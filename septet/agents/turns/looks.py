"""Looks at streams, many at a time: a thread for each look of each agent would cost more than the looks."""

import asyncio
from typing import Final, Protocol

_SHARE: Final = 0.2
"""Of the time between two looks: so long one waits for the looks of others."""


class GrowingStream(Protocol):
    """What an agent writes, as far as it was read."""

    def read_some(self) -> bool:
        """Read what is new, up to a bound; return whether that was all."""

    def catch_up(self) -> None:
        """Read all that is new."""


class Looks:
    """The looks of all that one event loop follows, gathered and taken in one thread."""

    def __init__(self) -> None:
        """Begin with none."""
        self._asked: list[tuple[GrowingStream, asyncio.Future[bool]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    async def catch_up(self, stream: GrowingStream, look_seconds: float) -> None:
        """Read what is new of a stream, a moment later, with those of others; one that is long holds up nobody.

        Args:
            stream: It is read by nobody else meanwhile.
            look_seconds: The time between two looks.

        Raises:
            OSError: It cannot be read.
        """
        loop = asyncio.get_running_loop()
        is_all: asyncio.Future[bool] = loop.create_future()
        if self._loop is not loop:
            self._loop, self._asked = loop, []
        self._asked.append((stream, is_all))
        if len(self._asked) == 1:
            loop.call_later(_SHARE * look_seconds, self._take)
        if not await is_all:
            await asyncio.to_thread(stream.catch_up)

    def _take(self) -> None:
        asked, self._asked = self._asked, []
        looking = asyncio.get_running_loop().run_in_executor(None, _read_all, [stream for stream, _ in asked])
        looking.add_done_callback(lambda reading: _tell([is_all for _, is_all in asked], reading))


def _read_all(streams: list[GrowingStream]) -> list[bool | Exception]:
    """Read some of each; what fails for one is no other's."""
    return [_read(stream) for stream in streams]


def _read(stream: GrowingStream) -> bool | Exception:
    try:
        return stream.read_some()
    except Exception as error:  # noqa: BLE001 -- it is raised where the stream is followed
        return error


def _tell(waiting: list[asyncio.Future[bool]], reading: asyncio.Future[list[bool | Exception]]) -> None:
    """Give each that waits what became of its stream; who was cancelled meanwhile asks no more."""
    if reading.cancelled():
        for each in waiting:
            each.cancel()
        return
    for each, read in zip(waiting, reading.result(), strict=True):
        if each.done():
            continue
        if isinstance(read, Exception):
            each.set_exception(read)
        else:
            each.set_result(read)
