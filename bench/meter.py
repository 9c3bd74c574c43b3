"""What the server itself counts as billable Actions."""

import asyncio
import re
import urllib.request
from collections import Counter
from typing import Final

_SETTLE_SECONDS: Final = 4.0
"""The server's figures lag by about a second, and a host tells within two what a work order has cost."""
_LINE: Final = re.compile(r'^action\{action_type="(\w+)",namespace="(\w+)"[^}]*\} (\d+)', re.MULTILINE)


async def read_actions(metrics: str, namespace: str = "default") -> Counter[str]:
    """Return how many Actions of each type the server has counted so far.

    Args:
        metrics: The address of the server's metrics.
        namespace: Whose.
    """
    await asyncio.sleep(_SETTLE_SECONDS)
    return count_actions(await asyncio.to_thread(_read, metrics), namespace)


def count_actions(text: str, namespace: str = "default") -> Counter[str]:
    """Return the Actions by type that the text of the server's metrics tells of."""
    counts: Counter[str] = Counter()
    for kind, of, number in _LINE.findall(text):
        if of == namespace:
            counts[kind.removeprefix("command_").removeprefix("grpc_")] += int(number)
    return counts


def _read(metrics: str) -> str:
    with urllib.request.urlopen(metrics, timeout=10) as reply:  # noqa: S310 -- loopback
        text: str = reply.read().decode()
    return text
