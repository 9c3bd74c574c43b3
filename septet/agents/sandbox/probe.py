"""Find what guests can start on this host: an agent's program, and the programs of a repository."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.agents.clis.adapter import Adapter, Machine, Turn
from septet.agents.clis.registry import seen_login
from septet.agents.guest.description import GuestFiles, guest_environment
from septet.agents.guest.programs import Needs
from septet.agents.guest.toolchains import toolchain_paths
from septet.agents.runs.folders import Runs
from septet.agents.sandbox.guest_run import GuestCommand, GuestRunner
from septet.agents.sandbox.sandbox import Sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.errors import SandboxError, SeptetError
from septet.system.durable import close_after, lock, open_lock
from septet.system.masking import preview

_VERSION: Final = re.compile(r"\d+\.\d+\.\d+")
_UNCONFINED: Final = Sandbox()
_VERSION_SECONDS: Final = 30.0
"""The longest wait for a version: some programs take ten seconds on their first start."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found of one agent on this host: program, version, login, and what keeps the agent from work."""

    program: str
    version: str | None
    """The version; `None` if the program prints no version."""
    tested: str
    """The tested range of versions, as text; empty for a configured program."""
    in_range: bool
    is_newer: bool
    """Whether the version is newer than the newest tested version."""
    login: str | None
    """The variable or file that looks like a login; `None` if nothing does. Only a call of the model shows whether
    the login is valid."""
    obstacle: SeptetError | None
    """The reason why the agent cannot work on this host; `None` if it can."""
    complaint: str = ""
    """The first line that the program prints instead of a version, for example if a part is not installed."""


def probe(adapter: Adapter, host: Machine, worktree: Path, sandbox: Sandbox = _UNCONFINED) -> Probe:
    """Find an agent's program; return its version, its login, and what keeps the agent from work on this host.

    Raises:
        AgentMissingError: The program was not found.
        AgentError: The agent is not configured.
    """
    facts = adapter.capabilities
    invocation = adapter.invocation(Turn(prompt="", worktree=worktree, tools="none"), host)
    program, env = invocation.argv[0], dict(invocation.env)
    version, complaint = _version(Sandbox(), program, worktree, env) if facts.tested_version else (None, "")
    obstacle: SeptetError | None = None
    try:
        adapter.invocation(Turn(prompt="", worktree=worktree), host)
    except SeptetError as error:  # a step's work is impossible here, for example as root without a sandbox
        obstacle = error
    if obstacle is None and version is not None and sandbox.confines:
        inside, why = _version(sandbox, program, worktree, guest_environment(env))
        if inside is None:
            remedy = (
                "Start the worker (`septet up`) again with the folders that it needs added to SEPTET_GUEST_PATHS."
            )
            obstacle = SandboxError(f"{program} does not start in the sandbox: {why}", remedy=remedy)
    oldest, newest = facts.tested_since or facts.tested_version or "0", facts.tested_version or "0"
    parts = _version_parts(version) if version is not None else ()
    return Probe(
        program=program,
        version=version,
        tested=" to ".join(dict.fromkeys(filter(None, (facts.tested_since, facts.tested_version)))),
        in_range=_version_parts(oldest) <= parts <= _version_parts(newest),
        is_newer=parts > _version_parts(newest),
        login=seen_login(adapter, host),
        obstacle=obstacle,
        complaint=complaint,
    )


def _version(sandbox: Sandbox, program: str, worktree: Path, env: dict[str, str]) -> tuple[str | None, str]:
    """Return a program's version and an empty text; without a version, `None` and the reason."""
    try:
        answer = sandbox.run((program, "--version"), GuestFiles(worktree, env=env), env, _VERSION_SECONDS)
    except OSError as error:
        return None, error.strerror or str(error)
    match = _VERSION.search(answer.stdout.decode("utf-8", errors="replace"))
    if match is not None and answer.exit_code == 0:
        return match[0], ""
    words = (answer.stderr or answer.stdout).decode("utf-8", errors="replace").strip()
    return None, preview(words.partition("\n")[0])


def _version_parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def try_network(sandbox: Sandbox, env: Mapping[str, str], state_dir: Path) -> str:
    """Start an idle guest in a private network; return the reason of a failure, or an empty text.

    The files of the trial are in `state_dir` if this folder exists, or else in the system's temporary folder.
    """
    place = state_dir if state_dir.is_dir() else None
    # The supervisor may write its last record while the folder is removed; such an error is ignored.
    supervisors = Supervisors()
    try:
        with tempfile.TemporaryDirectory(prefix="trial-", dir=place, ignore_cleanup_errors=True) as name:
            folder = Path(name)
            workspace = folder / "workspace"
            workspace.mkdir()
            with close_after(open_lock(folder / "writer")) as writer_lock:
                lock(writer_lock)
                runner = GuestRunner(Runs(folder), supervisors, sandbox, folder / "records", None, writer_lock)
                path = {"PATH": env.get("PATH", os.defpath)}
                end = runner.run(GuestCommand(("true",), path, workspace, 20.0))
    except (SeptetError, OSError) as error:
        return str(error)
    finally:
        supervisors.close()
    if end.record.cause == "exited" and end.code == 0:
        return ""
    return end.record.why or end.output.strip()[-300:] or f"it ended with {end.code}"


_LOOK: Final = """
set -f
for name; do
    name=${name#=}
    IFS=:
    for folder in $PATH; do
        case $name in /*) file=$name;; *) file=$folder/$name;; esac
        [ -f "$file" ] && [ -x "$file" ] && continue 2
    done
    printf '%s\\0' "$name"
done
"""
"""The script that prints the names of missing programs. A `=` precedes each name, because guests see every file
whose bare path is an argument."""
_NOWHERE: Final = "Install it where the worker runs, or correct its name."


@dataclass(frozen=True, slots=True)
class MissingProgram:
    """A program that guests do not find, with a message and a remedy."""

    name: str
    message: str
    remedy: str


def missing_programs(
    sandbox: Sandbox, folder: Path, env: Mapping[str, str], commands: Sequence[Sequence[str]], what: str
) -> Iterator[MissingProgram]:
    """Yield each program that a repository's commands name, but that guests do not find.

    Paths relative to the repository are not checked, because set-up or an agent may create the program later.
    `what` names the commands in the messages.

    Raises:
        OSError: No guest could be started.
    """
    named = dict.fromkeys(argv[0] for argv in commands)
    names = [name for name in named if os.sep not in name or name.startswith(os.sep)][:100]
    for name in _unseen(sandbox, folder, env, names) if names else ():
        yield _describe(sandbox, env, name, what)


def _unseen(sandbox: Sandbox, folder: Path, env: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return the names of programs that a guest does not find; empty if the guest ends with an error."""
    if not sandbox.confines:
        return [name for name in names if shutil.which(name, path=env.get("PATH", os.defpath)) is None]
    argv = ("/bin/sh", "-c", _LOOK, "look", *(f"={name}" for name in names))
    done = sandbox.run(argv, GuestFiles(folder, env=env), sandbox.environment(env), 30.0)
    return os.fsdecode(done.stdout).split("\0")[:-1] if done.exit_code == 0 else []


def _describe(sandbox: Sandbox, env: Mapping[str, str], name: str, what: str) -> MissingProgram:
    outside = shutil.which(name, path=env.get("PATH", os.defpath))
    if outside is None or not sandbox.confines:
        place = "does not exist" if name.startswith(os.sep) else "is not on the worker's PATH"
        return MissingProgram(name, f"{what} `{name}`: this program {place}.", _NOWHERE)
    message = f"{what} `{name}` is {outside} on this machine, and agents and checks do not see that."
    named = [f"{each.path}{':rw' if each.writable else ''}" for each in sandbox.world.named_paths]
    home, path = sandbox.world.home, Path(outside)
    needs = Needs(env.get("PATH", ""), home)
    needs.add_program(path)
    seen = [needs.trace(each) for each in toolchain_paths(home, env)]
    parts = [each.path for each in needs.bindings(seen) if each.path != needs.trace(path)]
    paths = [*([] if any(path.is_relative_to(part) for part in parts) else [outside]), *map(str, parts)]
    short = [f"~{each[len(str(home)) :]}" if each.startswith(f"{home}/") else each for each in paths]
    setting = ",".join([*named, *short])
    return MissingProgram(name, message, f'Show it to them: start the worker with SEPTET_GUEST_PATHS="{setting}".')
