"""What the server holds in memory: its heap after a collection, as its own metrics tell."""

import re
from dataclasses import dataclass
from typing import Final

import httpx

_HEAP: Final = re.compile(rb"^memory_heap(?:\{[^}]*\})? (\S+)$", re.MULTILINE)
_WITHIN_SECONDS: Final = 10.0


@dataclass(slots=True)
class LiveHeap:
    """The least that was seen of a heap which grows to twice what is live before it is collected."""

    metrics: str
    """The address of the server's metrics."""
    _least: float = 0.0
    """In bytes, since it was asked for last; 0 where nobody has looked."""

    async def look(self) -> None:
        """Look once.

        Raises:
            httpx.HTTPError: The server does not tell.
            ValueError: It tells of no heap.
        """
        async with httpx.AsyncClient(timeout=_WITHIN_SECONDS) as client:
            told = (await client.get(self.metrics)).raise_for_status().content
        found = _HEAP.search(told)
        if found is None:
            raise ValueError(f"{self.metrics} tells of no memory_heap.")
        heap = float(found[1])
        self._least = min(self._least or heap, heap)

    def take(self) -> float:
        """Return the least that was seen since it was asked for last, in bytes."""
        least, self._least = self._least, 0.0
        return least
