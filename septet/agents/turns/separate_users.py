"""Guests that are users of their own: where bubblewrap does not start, and the worker is root.

What such a user is given lies where it always does: its workspace and a home of its work order are its own, the
mirror's objects can be read by a group of that mirror alone, and folders that lead there can be passed. All else
of the state directory and of root's is closed to it, and so are other guests. Its network is the machine's.
"""

import json
import os
import secrets
import stat
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.agents.guest.programs import Needs
from septet.agents.guest.system_calls import refused_system_calls
from septet.agents.supervisor import AS_SEPARATE_USER, PYTHON_OPTIONS
from septet.agents.supervisor.own_user import FIRST_USER
from septet.errors import AgentError
from septet.state import GUESTS_GROUP
from septet.system import processes

_FEWEST, _USERS = 1 << 23, 1 << 28
"""Above `FIRST_USER`, and above those that are named by a process's number: so many that no two runs share one."""
_FIRST_GROUP, _GROUPS = 0x60000000, 0x0FFFFFF0
_TEMPORARY: Final = ".tmp"
_TRIAL_SECONDS: Final = 10.0
_MOVE: Final = (
    "Put Septet and its Python where every user may enter, such as /opt, and run `make setup` there; "
    "or set SEPTET_SANDBOX=auto."
)
_NAME: Final = (
    "Install {agent} where every user may enter, such as /opt, and name it with SEPTET_{variable}_PATH; "
    "or set SEPTET_SANDBOX=auto."
)


@dataclass(frozen=True, slots=True)
class UserPlaces:
    """What one run's user is given."""

    state: Path
    """The state directory."""
    worktree: Path
    home: Path
    """Its own, below one of its work order's own."""
    objects: Path | None = None
    """The folder of the mirror's objects that the worktree borrows."""
    keeps_home: bool = True
    """What is in its home is needed by later runs."""

    @property
    def temporary(self) -> Path:
        """The folder for its temporary files, made anew for each run."""
        return self.home / _TEMPORARY if self.keeps_home else self.home

    def environment(self, env: Mapping[str, str], moved_by: str = "") -> dict[str, str]:
        """Return a program's environment as it means something to that user.

        Args:
            env: The environment of one that is no such user.
            moved_by: The variable that names the folder of its CLI elsewhere.
        """
        inside = {name: value for name, value in env.items() if name not in {moved_by, "XDG_RUNTIME_DIR"}}
        return inside | {"HOME": str(self.home), "TMPDIR": str(self.temporary)}

    def command(self, user: int, argv: Sequence[str], process_limit: int = 0) -> tuple[str, ...]:
        """Return the arguments that start a program as that user.

        Raises:
            OSError: The disk refused.
        """
        self.home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.home.mkdir(mode=0o700, exist_ok=True)
        leading = dict.fromkeys((*reversed(self.worktree.parents), *reversed(self.home.parents)))
        passages = [(path, GUESTS_GROUP) for path in leading if path.is_relative_to(self.state)]
        readable = []
        if self.objects is not None:
            group = _FIRST_GROUP + zlib.crc32(os.fsencode(self.objects)) % _GROUPS
            passages += [(self.objects.parent.parent, GUESTS_GROUP), (self.objects.parent, group)]
            readable = [(self.objects, group)]
        given = {
            "user": user,
            "passages": [(str(path), group) for path, group in passages],
            "readable": [(str(path), group) for path, group in readable],
            "empty": [str(self.temporary)],
            "own": [str(self.worktree), str(self.home)],
            "system_calls": refused_system_calls().hex(),
            "processes": process_limit,
        }
        return (sys.executable, *PYTHON_OPTIONS, AS_SEPARATE_USER, json.dumps(given, ensure_ascii=False), *argv)


def new_user() -> int:
    """Return a user for one run."""
    return FIRST_USER + _FEWEST + secrets.randbelow(_USERS - _FEWEST)


def check_program(agent: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
    """See that such a user can start an agent's program, with its interpreter and its packages.

    Raises:
        AgentError: It lies where only root may look.
    """
    needs = Needs(env.get("PATH", os.defpath))
    needs.add_program(Path(argv[0]))
    for path in needs.paths:
        place = find_closed(path)
        if place is not None:
            needed = "" if str(path) == argv[0] else f", which needs {path}"
            raise AgentError(
                f"SEPTET_SANDBOX=uid: no separate user can start {argv[0]}{needed}: "
                f"only its owner may enter or read {place}.",
                remedy=(_MOVE if agent == "scripted" else _NAME).format(agent=agent, variable=agent.upper()),
            )


def find_closed(path: Path) -> Path | None:
    """Return the outermost part of a path that other users than its owner may not enter or read."""
    for part in (*reversed(path.parents), path):
        mode = part.stat().st_mode if part.exists() else 0
        needed = stat.S_IXOTH if part != path or stat.S_ISDIR(mode) else stat.S_IROTH | stat.S_IXOTH
        if mode and not mode & needed:
            return part
    return None


def run_as_user(state: Path, argv: Sequence[str], env: Mapping[str, str], seconds: float) -> processes.Completed:
    """Run a program of the worker's own as such a user, in a folder of its own: a trial.

    Raises:
        OSError: It could not be started.
    """
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="trial-", dir=state) as name:
        folder = Path(name)
        worktree = folder / "workspaces" / "trial"
        worktree.mkdir(mode=0o700, parents=True)
        places = UserPlaces(state, worktree, folder / "homes" / "trial" / "guest", keeps_home=False)
        return processes.run(
            places.command(new_user(), argv), env=places.environment(env), cwd=worktree, timeout_seconds=seconds
        )


def try_user(state: Path, env: Mapping[str, str]) -> str:
    """Have such a user write into a folder of its own, by its path; return why it cannot, or nothing."""
    if os.geteuid() != 0:
        return "only a worker that is root can start them"
    place = find_closed(state.parent)
    if place is not None:
        return f"other users may not enter {place}, in which the state directory {state} is"
    try:
        done = run_as_user(state, ("/bin/sh", "-c", ': > "$HOME/made"'), env, _TRIAL_SECONDS)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    words = done.stderr.decode(errors="replace").strip()
    return "" if done.exit_code == 0 else words[-300:] or f"it ended with {done.exit_code}"
