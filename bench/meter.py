"""The billable Actions by the server's own count."""

import asyncio
import re
import urllib.request
from collections import Counter
from typing import Final

_SETTLE_SECONDS: Final = 4.0
"""The seconds until the figures are complete: the server lags by one, and a host's report of costs by two."""
_LINE: Final = re.compile(r'^action\{action_type="(\w+)",namespace="(\w+)"[^}]*\} (\d+)', re.MULTILINE)


async def read_actions(metrics: str, namespace: str = "default") -> Counter[str]:
    """Return the server's count of Actions so far, by type.

    Args:
        metrics: The address of the server's metrics.
        namespace: The namespace of the Actions.
    """
    await asyncio.sleep(_SETTLE_SECONDS)
    return count_actions(await asyncio.to_thread(_read, metrics), namespace)


def count_actions(text: str, namespace: str = "default") -> Counter[str]:
    """Return the Actions by type in the text of the server's metrics."""
    counts: Counter[str] = Counter()
    for kind, of, number in _LINE.findall(text):
        if of == namespace:
            counts[kind.removeprefix("command_").removeprefix("grpc_")] += int(number)
    return counts


def _read(metrics: str) -> str:
    with urllib.request.urlopen(metrics, timeout=10) as reply:  # noqa: S310 -- loopback
        text: str = reply.read().decode()
    return text
