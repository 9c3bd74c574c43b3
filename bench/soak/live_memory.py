"""What the server holds in memory: its heap after a collection and its stacks, as its own metrics tell."""

import re
from dataclasses import dataclass
from typing import Final

import httpx

_PARTS: Final = tuple(
    re.compile(rb"^%s(?:\{[^}]*\})? (\S+)$" % name, re.MULTILINE) for name in (b"memory_heap", b"memory_stack")
)
_WITHIN_SECONDS: Final = 10.0


@dataclass(slots=True)
class LiveMemory:
    """The least that was seen of heap and stacks: a heap grows to twice what is live before it is collected."""

    metrics: str
    """The address of the server's metrics."""
    _least: float = 0.0
    """In bytes, since it was asked for last; 0 where nobody has looked."""

    async def look(self) -> None:
        """Look once.

        Raises:
            httpx.HTTPError: The server does not tell.
            ValueError: It tells of no heap, or of no stacks.
        """
        async with httpx.AsyncClient(timeout=_WITHIN_SECONDS) as client:
            told = (await client.get(self.metrics)).raise_for_status().content
        found = [part.search(told) for part in _PARTS]
        parts = [float(match[1]) for match in found if match is not None]
        if len(parts) < len(_PARTS):
            raise ValueError(f"{self.metrics} does not tell of both memory_heap and memory_stack.")
        self._least = min(self._least or sum(parts), sum(parts))

    def take(self) -> float:
        """Return the least that was seen since it was asked for last, in bytes."""
        least, self._least = self._least, 0.0
        return least
