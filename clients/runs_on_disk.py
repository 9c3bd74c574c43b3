"""What this host's disk knows of a work order's agent runs."""

import json
from pathlib import Path
from typing import Any

from septet.state import StateDir


def runs_of(state: StateDir, order_id: str) -> list[dict[str, Any]]:
    """Return the agent runs of a work order that this host kept, oldest first; none on another host.

    Each is `{run, step, agent, started_at, ended_at, exit_code, cause, folder}`.
    """
    folder = state.runs / order_id
    if not folder.is_dir():
        return []
    return [_run(path) for path in sorted(folder.iterdir(), key=_order) if (path / "run.json").exists()]


def _run(path: Path) -> dict[str, Any]:
    record = _read(path / "run.json")
    end = _read(path / "exit.json")
    return {
        "run": path.name,
        "agent": record.get("agent"),
        "session_id": record.get("session_id"),
        "started_at": record.get("started_at"),
        "ended_at": end.get("ended_at"),
        "exit_code": end.get("exit_code"),
        "cause": end.get("cause"),
        "folder": str(path),
    }


def _order(path: Path) -> tuple[float, str]:
    return (path.stat().st_ctime, path.name)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
