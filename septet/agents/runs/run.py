"""One agent run: who started it, and its folder with its record, its streams and its end."""

import os
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, TypeVar, cast

import msgspec

from septet.agents.outcomes.endings import RESTARTED
from septet.agents.outcomes.outcome import ExitRecord
from septet.agents.processes.process_tree import identity
from septet.system.durable import read_struct, write_atomically
from septet.system.locks import lock_is_held

R = TypeVar("R")

_SET_ASIDE: Final = "set-aside"
_KEPT_FILES: Final = 1024
"""Records and ends of runs that are not read again: a step looks at those of its work order many times."""

StartReason = Literal[
    "first", "crashed", "rerun", "limit", "context", "session", "refused", "waited", "interrupted"
]
"""Why an agent is started: for the first time; after a crash, in its session; after another crash, anew from the
checkpoint; after a limit, in its session; after its context was full, in a new one; after a wait for the model API
or the machine; after it was ended for a reason that is over."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """Whose run it is: only an attempt of the same activity in the same workflow run may adopt it."""

    workflow_id: str
    run_id: str
    activity_id: str


@dataclass(frozen=True, slots=True)
class Payer:
    """The owner of a run's costs, as each attempt of its turn reports it to the history of costs."""

    project: str
    order_id: str
    step: str
    agent: str
    """The agent that the work order began with: the usage of another agent is reported separately."""
    asked_model: str = ""
    """The model that the work order asks for; empty where it asks for none."""
    of_pipeline: bool = False


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is known of a run when it starts: `run.json`. No secret and no value of the environment is in it."""

    key: RunKey
    serial: int
    """Counts the runs of one work order."""
    step: str
    agent: str
    because: StartReason
    """Why it was started."""
    mark: str
    """The value of `SEPTET_RUN` in its processes; the turns of one process share it."""
    argv: tuple[str, ...]
    env_names: tuple[str, ...]
    worktree: str
    limits: Mapping[str, float]
    started_at: str
    """ISO 8601, UTC."""
    began_at_seconds: float = 0.0
    """When it began, in seconds since the machine's start, which no change of the clock moves; 0 where an earlier
    release did not note it."""
    session_id: str | None = None
    resumed_from: str | None = None
    sandbox: str = "none"
    """`bwrap`, or `none` for an agent that runs unconfined."""
    network: str = ""
    """`own`: a private network whose proxy is the only way out; `host`: the machine's; empty: none is noted."""
    warm: bool = False
    """Its process was to be left running for a further turn."""
    began_in: str | None = None
    """The run that started its process, where that had been left running."""
    login: str = ""
    """The name of the further login that it has; empty for the worker's own."""
    model: str = ""
    """The requested model; empty for the agent's own default."""
    payer: Payer | None = None

    @property
    def worker(self) -> str:
        """Who works, in words: the agent, and its login where that is a further one."""
        return f"{self.agent} ({self.login})" if self.login else self.agent


class _Home(msgspec.Struct):
    """Where a run's supervisor lives, by its own account."""

    boot_id: str
    pid_namespace: str


@dataclass(frozen=True, slots=True)
class Run:
    """One run's folder."""

    folder: Path
    record: RunRecord | None = field(repr=False)
    """`None` when `run.json` cannot be read: then it is nobody's."""
    runner: Path | None = None
    """The lock of this host's runner, where supervisors are its children."""

    @property
    def name(self) -> str:
        """The folder, relative to the state directory."""
        return "/".join(self.folder.parts[-3:])

    @property
    def checks(self) -> Path:
        """Where the records of the checks of its work lie."""
        return self.folder / "checks"

    @property
    def stdout(self) -> Path:
        """The agent's stream."""
        return self.folder / "stdout.jsonl"

    @property
    def stderr(self) -> Path:
        """What it printed beside."""
        return self.folder / "stderr.log"

    @property
    def has_started(self) -> bool:
        """Whether a supervisor took it up; else the attempt that made the folder died before that."""
        return self.stdout.exists()

    @property
    def set_aside(self) -> bool:
        """Whether its activity was reset since: then it counts no more than one of another workflow run."""
        return (self.folder / _SET_ASIDE).exists()

    def leave_aside(self) -> None:
        """Let the run count no more."""
        self.put(_SET_ASIDE, b"")

    def lives(self) -> bool:
        """Whether its supervisor lives."""
        return lock_is_held(self.folder / "lock")

    def exit(self) -> ExitRecord | None:
        """Return how it ended; `None` while it lives, and when its supervisor was killed."""
        try:
            return _read_whole(f"{self.folder}/exit.json", ExitRecord)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def close_as_lost(self) -> None:
        """Record that nobody saw it end, and whether the machine or container ended with it."""
        why = RESTARTED if self._was_elsewhere() else ""
        self.put("exit.json", msgspec.json.encode(ExitRecord(cause="lost", why=why)))

    def drop_unstarted(self) -> None:
        """Leave nothing of a run that no supervisor has taken up: there may be many tries."""
        if not (self.lives() or self.has_started):
            with suppress(OSError):
                drop_run(self.folder)

    def _was_elsewhere(self) -> bool:
        """Return whether the run predates the machine's or runner's last start, or its container is gone."""
        if self.runner is not None:
            return not lock_is_held(self.runner) or _changed_at(self.runner) > _changed_at(self.folder / "lock")
        home = read_struct(self.folder / "lock", _Home)
        if home is None:
            return False
        here = identity(os.getpid())
        return (home.boot_id, home.pid_namespace) != (here["boot_id"], here["pid_namespace"])

    def size_of(self, name: str) -> int:
        """Return how many bytes one of its files has; 0 where it is not there."""
        path = self.folder / name
        return path.stat().st_size if path.exists() else 0

    def put(self, name: str, content: bytes) -> None:
        """Put a file beside the run's own, whole or not at all."""
        write_atomically(self.folder / name, content)


def drop_run(folder: Path) -> None:
    """Remove the files of a run that was made and not started, and their folder."""
    for name in ("prompt.md", "run.json", "lock"):
        (folder / name).unlink(missing_ok=True)
    folder.rmdir()


def read_run(folder: Path, runner: Path | None) -> Run:
    """Return the run in a folder, on a host whose runner has this lock."""
    return Run(folder, _read_record(folder), runner)


def _read_record(folder: Path) -> RunRecord | None:
    try:
        return _read_whole(f"{folder}/run.json", RunRecord)
    except (OSError, msgspec.MsgspecError):
        return None


def _read_whole(path: str, kind: type[R]) -> R:
    """Read a file that nobody changes once it is whole; one that was read lately is not read again.

    Raises:
        OSError: It cannot be read.
        MsgspecError: It is no record of this kind.
    """
    facts = os.stat(path)  # noqa: PTH116 -- of hundreds, in text
    return cast("R", _read_once(path, cast("Hashable", kind), (facts.st_ino, facts.st_mtime_ns, facts.st_size)))


@lru_cache(maxsize=_KEPT_FILES)
def _read_once(path: str, kind: Hashable, stamp: tuple[int, ...]) -> object:
    del stamp  # a file that has changed has another stamp
    return msgspec.json.decode(Path(path).read_bytes(), type=cast("type[object]", kind))


def _changed_at(path: Path) -> int:
    """Return when a file was written last, in nanoseconds; 0 when it is not there."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
