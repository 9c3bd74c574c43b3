"""The live memory of the server by its own metrics: its heap after a collection, and its stacks."""

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
    """The least size of heap and stacks: a heap grows to twice its live part before a collection."""

    metrics: str
    """The address of the server's metrics."""
    _least: float = 0.0
    """The least bytes since the last `take`; 0 before a measurement."""

    async def look(self) -> None:
        """Measure once.

        Raises:
            httpx.HTTPError: The server does not answer.
            ValueError: The metrics lack the heap or the stacks.
        """
        async with httpx.AsyncClient(timeout=_WITHIN_SECONDS) as client:
            told = (await client.get(self.metrics)).raise_for_status().content
        found = [part.search(told) for part in _PARTS]
        parts = [float(match[1]) for match in found if match is not None]
        if len(parts) < len(_PARTS):
            raise ValueError(f"{self.metrics} does not tell of both memory_heap and memory_stack.")
        self._least = min(self._least or sum(parts), sum(parts))

    def take(self) -> float:
        """Return the least bytes since the last call."""
        least, self._least = self._least, 0.0
        return least
