"""The output of the bench's programs: JSON files under `bench/results/`, with machine, version and moment."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.figure import Figure
from bench.machine import Machine, machine, version

RESULTS = Path(__file__).parent / "results"


def report(
    figures: Mapping[str, Sequence[Figure]], machine: Machine, version: str, *, seed: int, quick: bool
) -> dict[str, Any]:
    """Return the figures with their machine, version and moment."""
    return {
        "measured_at": _now(),
        "version": version,
        "machine": asdict(machine),
        "seed": seed,
        "quick": quick,
        "figures": [{"group": group, **figure.as_json()} for group, lines in figures.items() for figure in lines],
    }


def write_report(content: Mapping[str, Any], folder: Path = RESULTS) -> Path:
    """Write the report as `<date>-<machine>.json` and return its path; a later report of the day replaces it."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", content["machine"]["name"]).strip("-") or "unnamed"
    return _write(folder / f"{content['measured_at'][:10]}-{name}.json", content)


def write_figures(path: Path, content: Mapping[str, Any], on: Machine | None = None) -> Path:
    """Write the results of a trial with moment, version and machine, and return the path.

    Args:
        path: `/dev/null` for figures that are not kept.
        content: The results as values of JSON.
        on: The machine before the trial; `None` for the machine as it is now.
    """
    told = {"measured_at": _now(), "version": version(), "machine": asdict(on or machine())}
    return _write(path, {**told, **content})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _write(path: Path, content: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
