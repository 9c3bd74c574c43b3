"""What a lane remembers of the runs of work orders that have left it, so that no step reads them all again.

It says nothing that the runs' own folders do not say: where it is missing or broken, they are read as ever.
"""

from pathlib import Path
from typing import Final

from pydantic import Field

from septet.contracts.facts import Usage
from septet.contracts.wire import Wire
from septet.system.durable import read_model, write_atomically

_FILE: Final = "past.json"


class InSession(Wire):
    """What runs of one session came to together."""

    usage: Usage = Usage()
    prompt_bytes: int = 0
    stream_bytes: int = 0
    """What lies on disk of them: by this it is guessed how long a session is whose CLI does not say so."""
    model: str = ""
    """The model that the last of them requested; empty for the agent's own default."""


class ArchivedRuns(Wire):
    """Runs of a lane that are over, with their work orders' stays."""

    runs: frozenset[str] = frozenset()
    """Their folders' names."""
    serial: int = 0
    """The highest one of them."""
    sessions: dict[str, InSession] = Field(default_factory=dict)

    def of(self, session_id: str | None) -> InSession:
        """Return what a session came to in these runs."""
        return self.sessions.get(session_id or "", InSession())


def read_archive(folder: Path) -> ArchivedRuns:
    """Return what a folder of runs remembers; nothing where it is no lane's."""
    return read_model(folder / _FILE, ArchivedRuns) or ArchivedRuns()


def write_archive(folder: Path, past: ArchivedRuns) -> None:
    """Put this in the place of what was remembered; the caller holds the writer's lock."""
    write_atomically(folder / _FILE, past.model_dump_json().encode())
