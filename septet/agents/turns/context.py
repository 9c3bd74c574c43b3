"""How long a session is, where its CLI says nothing of it: guessed by what lies on disk of its runs."""

from typing import Final

from septet.agents.runs.archive import read_archive
from septet.agents.runs.folders import Run, Runs
from septet.agents.turns.turn_runs import TurnResult

_PROMPT_BYTES_A_TOKEN: Final = 4
_STREAM_BYTES_A_TOKEN: Final = 12
"""Streams say things twice, and with much around them."""


def context_of(carried: TurnResult) -> int:
    """Return how many tokens a run's session holds now: as its CLI says, or else a guess that is rather high."""
    return carried.outcome.context_tokens or _guessed(carried.run, carried.outcome.session_id)


def _guessed(run: Run, session_id: str | None) -> int:
    folder = run.folder.parent
    runs, past = Runs(folder.parent).lately(folder.name), read_archive(folder).of(session_id)
    own = [each for each in runs if each.folder == run.folder or (session_id and _session(each) == session_id)]
    prompts = past.prompt_bytes + sum(each.size_of("prompt.md") for each in own)
    streams = past.stream_bytes + sum(each.size_of("stdout.jsonl") for each in own)
    return prompts // _PROMPT_BYTES_A_TOKEN + streams // _STREAM_BYTES_A_TOKEN


def _session(run: Run) -> str | None:
    return run.record.session_id if run.record is not None else None
