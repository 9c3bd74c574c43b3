"""What a run of the bench leaves: a JSON file under `bench/results/`."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.figure import Figure
from bench.machine import Machine

RESULTS = Path(__file__).parent / "results"


def report(
    figures: Mapping[str, Sequence[Figure]], machine: Machine, version: str, *, seed: int, quick: bool
) -> dict[str, Any]:
    """Return the figures with what they were measured on."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "version": version,
        "machine": asdict(machine),
        "seed": seed,
        "quick": quick,
        "figures": [{"group": group, **figure.as_json()} for group, lines in figures.items() for figure in lines],
    }


def write_report(content: Mapping[str, Any], folder: Path = RESULTS) -> Path:
    """Write the report as `<date>-<machine>.json` and return its path; the day's last one stays."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9]+", "-", content["machine"]["name"]).strip("-") or "unnamed"
    path = folder / f"{content['measured_at'][:10]}-{name}.json"
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
