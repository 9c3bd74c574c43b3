"""The agents' own records: one file for each turn, read as it grows."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.chaos.processes import NOBODY, Pid


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file."""

    blob: str
    """Git's id of the content."""
    size: int


@dataclass(slots=True)
class Life:
    """One turn of an agent process, from its first note to its last; outside of a pipeline its only turn."""

    order: str
    name: str
    """The name of the journal's file."""
    step: str = ""
    tree: str = ""
    """The name of the agent's folder."""
    pid: Pid = NOBODY
    run: str = ""
    """The mark of its process, if a supervisor gave it a mark."""
    resumed: bool = False
    second: bool = False
    """Whether another writer held the tree at its start."""
    began: float = 0.0
    """The start in seconds of the wall clock, like all moments here."""
    last: float = 0.0
    ended: bool = False
    """Whether the turn ended by itself."""
    notes: list[float] = field(default_factory=list)
    """The moment of each note."""
    units: dict[int, float] = field(default_factory=dict)
    """The finished units, with the seconds of each."""
    tools: list[Pid] = field(default_factory=list)
    written: dict[str, Content] = field(default_factory=dict)
    """The last written content, by path."""
    pending: dict[str, Content] = field(default_factory=dict)
    """The content that it was about to write at its last note, by path."""

    @property
    def seconds(self) -> float:
        """Return the seconds from its first note to its last."""
        return self.last - self.began

    @property
    def lives(self) -> bool:
        """Return whether its process lives and has not finished."""
        return not self.ended and self.pid.lives

    def hear(self, note: dict[str, Any]) -> None:
        """Take one note."""
        self.last = note["at"]
        self.notes.append(note["at"])
        event = note["event"]
        if event == "start":
            self.began, self.step, self.run = note["at"], note["step"], note["run"]
            self.pid, self.tree = _told(note), note["tree"]
            self.resumed, self.second = note["resumed"], note["second"]
        elif event == "unit":
            self.units[note["number"]] = note["seconds"]
        elif event == "tool":
            self.tools.append(_told(note))
        elif event == "writes":
            self.pending[note["path"]] = Content(note["blob"], note["size"])
        elif event == "wrote":
            self.written[note["path"]] = Content(note["blob"], note["size"])
            self.pending.pop(note["path"], None)
        elif event == "end":
            self.ended = True


@dataclass(slots=True)
class Journal:
    """All turns of all agent processes of one trial."""

    folder: Path
    _lives: dict[Path, Life] = field(default_factory=dict)
    _read: dict[Path, int] = field(default_factory=dict)

    def lives(self) -> list[Life]:
        """Read new notes and return all turns that have begun, by their start."""
        for path in self.folder.glob("*/*.jsonl"):
            life = self._lives.setdefault(path, Life(path.parent.name, path.stem))
            if not life.ended:
                self._hear(path, life)
        return sorted((life for life in self._lives.values() if life.began), key=lambda life: life.began)

    def living(self) -> list[Life]:
        """Return the turns whose processes live."""
        return [life for life in self.lives() if life.lives]

    def _hear(self, path: Path, life: Life) -> None:
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read[path] = self._read.get(path, 0) + len(whole)
        for line in whole.splitlines():
            life.hear(json.loads(line))


def _told(note: dict[str, Any]) -> Pid:
    return Pid.found(note["pid"], note["born"], note["namespace"])
