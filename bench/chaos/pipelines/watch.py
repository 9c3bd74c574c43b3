"""The continuous watch of both documents of results: an entry must stay once it is written."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from septet.pipelines.records import EXECUTION, PLANNING

DOCUMENTS: Final = (PLANNING, EXECUTION)
_LOOK_SECONDS: Final = 0.05
_KEPT: Final = ("status", "solution_id", "commit_hash")
"""The keys of an entry that never change."""


@dataclass(slots=True)
class Watch:
    """The observations of a pipeline's documents."""

    folder: Path
    looks: int = 0
    faults: list[str] = field(default_factory=list)
    _seen: dict[str, dict[str, tuple[Any, ...]]] = field(default_factory=dict)
    """The entry by document and issue."""

    async def until(self, over: asyncio.Event) -> None:
        """Poll until the event is set."""
        while not over.is_set():
            self.look()
            await asyncio.sleep(_LOOK_SECONDS)
        self.look()

    def look(self) -> None:
        """Read both documents once."""
        self.looks += 1
        for name in DOCUMENTS:
            try:
                entries = entries_in(self.folder / name)
            except FileNotFoundError:
                self.faults += [f"{name} is gone"] if name in self._seen else []
            except (ValueError, KeyError) as error:
                self.faults.append(f"{name} is not whole: {error}")
            else:
                self._compare(name, entries)

    def _compare(self, name: str, entries: list[dict[str, Any]]) -> None:
        now = {entry["issue_id"]: tuple(entry.get(key) for key in _KEPT) for entry in entries}
        before = self._seen.get(name, {})
        self.faults += [f"{name}: an issue is there twice"] if len(now) != len(entries) else []
        self.faults += [
            f"{name}: {issue} was {before[issue]} and is {now.get(issue)}"
            for issue in before
            if now.get(issue) != before[issue]
        ]
        self._seen[name] = now


def entries_in(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a document.

    Raises:
        FileNotFoundError: The document is missing.
        ValueError, KeyError: The document is not whole.
    """
    return list(json.loads(path.read_bytes())["results"])
