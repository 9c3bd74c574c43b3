"""Whole work orders with real CLIs, with a session for each step and for each role; a stub is the model.

`python -m bench.session_orders TIMES` prints the cost of each as JSON. The stub counts no tokens: requests are
counted in bytes, and a provider's cache is taken to serve the beginning that a request shares with an earlier
request.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, get_args

from fakes.day_host import serving_day
from fakes.model_day import day_of

from bench.real_turns import installed
from bench.sessions import AGENTS
from bench.stage import scratch
from septet.contracts.names import Sessions
from septet.settings import load_settings
from workers.observing.logs import set_up_logs

_PARTS: Final = ("tools", "system", "instructions", "messages", "input")
"""The parts of a request that a model reads, in the order of providers' caches."""


@dataclass(frozen=True, slots=True)
class OrderCost:
    """The cost of one work order."""

    requests: int
    sent_bytes: int
    """The bytes of tools, instructions and conversation, in all requests."""
    cached_bytes: int
    """The bytes of these with which an earlier request of the work order also began."""
    seconds: float
    outputs: list[str]
    """The output of each step."""


def measure_orders(times: int) -> dict[str, dict[str, list[OrderCost]]]:
    """Return the costs of this many work orders by agent and way of sessions; the ways take turns."""
    programs = installed()
    found: dict[str, dict[str, list[OrderCost]]] = {}
    with scratch() as folder:
        for agent in (each for each in AGENTS if f"SEPTET_{each.upper()}_PATH" in programs):
            home = folder / agent
            home.mkdir()
            costs: dict[str, list[OrderCost]] = {way: [] for way in get_args(Sessions)}
            for number in range(times + 1):
                for way, taken in costs.items():
                    root = folder / f"{agent}-{way}-{number}"
                    root.mkdir()
                    cost = asyncio.run(_carry_out(agent, way, programs, home, root))
                    if number:  # the first work order warms caches of the disk
                        taken.append(cost)
            found[agent] = costs
    return found


async def _carry_out(agent: str, sessions: Any, programs: dict[str, str], home: Path, root: Path) -> OrderCost:  # noqa: ANN401 -- a literal that was listed
    day = day_of(agent, programs, home, root)
    day.sessions = sessions
    async with serving_day(day) as orders:
        began = time.perf_counter()
        await day.start(orders)
        task = await day.until(orders, lambda task: task.status == "completed")
        seconds = time.perf_counter() - began
    texts = [_text_of(body) for body in day.model.bodies]
    cached = sum(_longest_beginning(text, texts[:index]) for index, text in enumerate(texts))
    outputs = [step.output or "" for step in task.steps[:-1]]
    return OrderCost(len(texts), sum(map(len, texts)), cached, seconds, outputs)


def _text_of(body: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(body[part]).encode() for part in _PARTS if body.get(part))


def _longest_beginning(text: bytes, earlier: Sequence[bytes]) -> int:
    return max((_common(text, each) for each in earlier), default=0)


def _common(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


if __name__ == "__main__":
    set_up_logs(load_settings())  # to stderr, for stdout has the figures
    measured = measure_orders(int(sys.argv[1]))
    told = {
        agent: {way: [asdict(cost) for cost in taken] for way, taken in ways.items()}
        for agent, ways in measured.items()
    }
    print(json.dumps(told))
