"""A host's disk after a turn: whether it holds the agent's result."""

import json
from pathlib import Path

from bench.chaos.journal import Life


def has_result(runs: Path, life: Life) -> bool:
    """Return whether a turn's result is among the records of its workspace's runs.

    Args:
        runs: The folder of all runs of a host.
        life: The turn; its run is the newest run that was ordered before its start.
    """
    ordered = [path for path in (runs / life.tree).glob("*/run.json") if path.stat().st_mtime <= life.began]
    newest = max(ordered, key=lambda path: path.stat().st_mtime_ns, default=None)
    if newest is None or not (output := newest.with_name("stdout.jsonl")).exists():
        return False
    return any(map(_is_result, output.read_bytes().splitlines()))


def _is_result(line: bytes) -> bool:
    try:
        return bool(json.loads(line)["type"] == "result")
    except (ValueError, KeyError, TypeError):
        return False
