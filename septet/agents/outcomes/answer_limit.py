"""The limit of an agent's answer: of a longer final text only the end is read, and that is said."""

import json
from dataclasses import replace
from typing import Final

from septet.agents.outcomes.outcome import Outcome
from septet.system.masking import mask

_KIB: Final = 1024
_SETTING: Final = "SEPTET_ANSWER_LIMIT_KIB"


def bound_answer(outcome: Outcome, limit_kib: int) -> tuple[Outcome, tuple[str, ...]]:
    """Return an outcome whose answer is within a limit, and what of it is not read; nothing where all is.

    Structured output over the limit is not read at all: half of it is another value.

    Args:
        outcome: What a run came to.
        limit_kib: At 1024 characters for each KiB.
    """
    most, text = limit_kib * _KIB, outcome.text or ""
    left_out = outcome.left_out + max(0, len(text) - most)
    notes: tuple[str, ...] = ()
    if left_out:
        length = (outcome.left_out + len(text)) // _KIB
        notes = (f"answer limit of {limit_kib} KiB reached: of {length} KiB only the end was read ({_SETTING}).",)
        outcome = replace(outcome, text=mask(text)[-most:], pieces=())
    if sum(map(len, outcome.pieces)) > most:
        outcome = replace(outcome, pieces=())
    if outcome.structured is not None and len(json.dumps(outcome.structured, ensure_ascii=False)) > most:
        words = f"answer limit of {limit_kib} KiB reached: the structured output was not read ({_SETTING})."
        notes, outcome = (*notes, words), replace(outcome, structured=None)
    return outcome, notes
