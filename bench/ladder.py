"""The answer ladder on hostile prose: its megabytes per second of CPU time, and its growth at twice the size."""

import json
import random
import time
from contextlib import suppress

from bench.figure import Figure
from bench.pace import Pace
from septet.answers.ladder import AnswerError
from septet.answers.steps import read_step_answer
from septet.contracts.names import Step

MB = 1_000_000
SIZE = 1_000_000
"""A number of characters, twice of which is below the ladder's limit."""
SPEED_TARGET = 2.0
LINEAR_TARGET = 2.3
"""The most time at twice the size, as a multiple: twice, and the machine's noise."""
_ANSWER = json.dumps({"success": True, "summary": "Done.", "key_changes_made": [], "key_learnings": []})


def measure(pace: Pace) -> list[Figure]:
    """Measure each kind of hostile text."""
    figures: list[Figure] = []
    for kind, unit in hostile(pace.seed).items():
        once = min(_seconds(_text(unit, SIZE)) for _ in range(pace.times(5, 2)))
        twice = min(_seconds(_text(unit, 2 * SIZE)) for _ in range(pace.times(5, 2)))
        figures += [
            Figure(kind, SIZE / MB / once, "MB/s", SPEED_TARGET, "at least"),
            Figure(f"{kind}, twice the size", twice / once, "times", LINEAR_TARGET),
        ]
    return figures


def hostile(seed: int) -> dict[str, str]:
    """Return the repeated part of a hostile text, by kind."""
    chance = random.Random(seed)  # noqa: S311 -- the same text each time is the point
    noise = "".join(chance.choices("{}[]\"'`:,\\/\n #abc01", k=4096))
    return {
        "opening braces": "{ ",
        "opening brackets": "[",
        "unclosed objects": '{"summary": "',
        "unclosed fences": "```json\n{\n",
        "backticks": "``` ` ```` ",
        "escapes": '"\\\\\\"',
        "comments": "{ // /* ",
        "noise": noise,
        "prose": "The step is done, and `shop/pricing.py` says so (see {braces} and [brackets]).\n",
    }


def _text(unit: str, size: int) -> str:
    """Return a hostile text of this size with an answer at its end."""
    return f"{(unit * (size // len(unit) + 1))[:size]}\n\n{_ANSWER}"


def _seconds(text: str) -> float:
    begin = time.process_time()
    with suppress(AnswerError):  # a refusal is an answer too, for only the time counts
        read_step_answer(Step.IMPLEMENT_PLAN, text)
    return time.process_time() - begin
