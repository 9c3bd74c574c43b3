"""The checks of `septet doctor` on the machine: its user, git's identity, the forge's key, the disk."""

import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from septet.agents.guest.system_calls import refused_system_calls
from septet.agents.processes.control_group import find_parent
from septet.agents.scripted.arguments import RefusalError
from septet.agents.scripted.scenario import built_in_scenarios, load_scenario
from septet.errors import UsageError
from septet.forges.choose import KEY_WAYS, hosts_with_key
from septet.settings import Settings
from septet.system import processes
from septet.system.disk import full_disk

CheckStatus = Literal["ok", "warning", "failed"]
_GIB: Final = 1024**3
_LEAST_FREE_GIB: Final = 5
SCENARIO: Final = "SEPTET_SCRIPTED_SCENARIO"
WORKER_AGENTS: Final = "worker agents"
OWN_NAME: Final = "scripted"
"""The name of the scripted agent for demos and tests, which is no coding agent."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check."""

    name: str
    status: CheckStatus
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class MissingAgent(Check):
    """The result of the check of an agent whose program is not on this machine."""


def machine_checks(settings: Settings, *, confines: bool) -> Iterator[Check]:
    """Yield the checks of user, git's identity, forge's key and disk; `confines`: guests have a sandbox."""
    yield _user(confines=confines)
    if confines:
        yield from filter_checks()
    try:
        check_scenario(settings.environ.get(SCENARIO, ""), SCENARIO)
    except UsageError as error:
        yield Check("scenario", "failed", error.message, error.remedy)
    yield group_check(*find_parent())
    yield _identity(settings)
    if hosts := hosts_with_key(settings):
        yield Check("forge", "ok", f"A key for {', '.join(hosts)} is set.")
    else:
        message = "No key for a forge is set: only repositories on this machine work."
        yield Check("forge", "warning", message, f"Set {KEY_WAYS}, and restart the worker.")
    yield _disk(settings.state_dir)


def filter_checks(machine: str = "") -> Iterator[Check]:
    """Yield a warning if Septet cannot filter the system calls of guests on this kind of machine.

    `machine` is the kernel's name of a machine type, such as `x86_64`; empty for this machine's type.
    """
    if not refused_system_calls(machine):
        message = f"On {machine or platform.machine()}, the kernel refuses no system calls to agents and checks."
        yield Check("system calls", "warning", message, "Run workers on x86_64 or aarch64.")


def check_scenario(name: str, source: str) -> None:
    """Check that the scripted agent can follow a scenario; `source` is the option or variable that named it.

    Raises:
        UsageError: The scenario does not exist, or is wrong.
    """
    try:
        load_scenario(name)
    except RefusalError as error:
        remedy = f"Choose one of {', '.join(built_in_scenarios())}, or give the path of a JSON file."
        raise UsageError(f"{source}: {str(error).removeprefix('Error: ')}.", remedy=remedy) from error


def group_check(parent: str, why: str) -> Check:
    """Return the check of the limits in control group `parent`; if `parent` is empty, `why` is the reason."""
    if parent:
        return Check("control groups", "ok", f"The kernel limits each agent and each check, in {parent}.")
    message = (
        f"The kernel does not limit agents and checks here: {why}. Every two seconds, Septet looks at what they "
        "use instead, and stops those that exceed a limit."
    )
    return Check("control groups", "ok", message)


def summary(checks: Sequence[Check]) -> str:
    """Return the summary of all checks on one line."""
    failed = [check.name for check in checks if check.status == "failed"]
    if failed:
        return f"Septet cannot work here yet: {', '.join(failed)}."
    agents = [check for check in checks if check.name.startswith("agent ")]
    names = [check.name.removeprefix("agent ") for check in agents if check.name != f"agent {OWN_NAME}"]
    is_there = {check.name.removeprefix("agent ") for check in agents if check.status == "ok"} - {OWN_NAME}
    if names and not is_there:
        if theirs := next((check.message for check in checks if check.name == WORKER_AGENTS), ""):
            return f"No agent CLI is ready in this shell. {theirs}"
        clis = ", ".join(name for name in names if name != "command")
        return f"No agent CLI is ready yet: install one of {clis} and log in. `septet demo` works without one."
    warnings = sum(check.status == "warning" and not isinstance(check, MissingAgent) for check in checks)
    noted = f"; {warnings} thing{'s' * (warnings != 1)} to note above" if warnings else ""
    return f"Ready with {', '.join(sorted(is_there)) or OWN_NAME}{noted}."


def without_missing_agents(checks: Sequence[Check]) -> list[Check]:
    """Return the checks as people see them: one line names all missing agents."""
    missing = [check.name.removeprefix("agent ") for check in checks if isinstance(check, MissingAgent)]
    clis = [name for name in missing if name != "command"]
    others = [check for check in checks if not isinstance(check, MissingAgent)]
    if not clis:
        return others
    is_ready = any(check.name.startswith("agent ") and check.name != f"agent {OWN_NAME}" for check in others)
    install = f"Install one, or set SEPTET_<AGENT>_PATH to its program, or SEPTET_COMMAND, {WORKER}."
    names = f"{', '.join(clis[:-1])} and {clis[-1]} are" if len(clis) > 1 else f"{clis[0]} is"
    if is_ready:
        return [*others, Check("agents", "ok", f"{names} not installed.")]
    return [*others, Check("agents", "warning", f"{names} not installed.", install)]


WORKER: Final = "where the worker (`septet up`) runs, and restart it"
"""The last words of a remedy that sets an environment variable: only a restarted worker sees the variable."""


def _user(*, confines: bool) -> Check:
    if os.geteuid() != 0:
        return Check("user", "ok", "An ordinary user.")
    if confines:
        return Check("user", "ok", "This is root; agents and checks are kept apart from it.")
    message = "This is root: some agent CLIs refuse to work without a sandbox as root."
    return Check("user", "warning", message, "Run Septet as an ordinary user, or install bubblewrap.")


def _identity(settings: Settings) -> Check:
    names = []
    for key in ("user.name", "user.email"):
        try:
            argv = ["git", "config", "--get", key]
            done = processes.run(argv, env=settings.user_git_env, cwd=Path("/"), timeout_seconds=10)
        except OSError:
            return Check("git identity", "ok", "Septet reads it once git is installed.")
        names.append(done.stdout.decode("utf-8", "replace").strip())
    if all(names):
        return Check("git identity", "ok", f"Commits are made as {names[0]} <{names[1]}>.")
    remedy = (
        "As the worker's user, run git config --global user.name 'Your Name' && git config --global user.email "
        "you@example.org; then restart the worker."
    )
    message = "git has no name and e-mail address configured: Septet commits under its own name."
    return Check("git identity", "warning", message, remedy)


def _disk(state_dir: Path) -> Check:
    folder = next((path for path in (state_dir, *state_dir.parents) if path.exists()), Path("/"))
    try:
        free = shutil.disk_usage(folder).free / _GIB
    except OSError as error:
        remedy = "Name another folder in SEPTET_STATE_DIR."
        return Check("disk", "warning", f"{folder} cannot be checked: {error.strerror}.", remedy)
    if not os.access(folder, os.W_OK):
        is_read_only = bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
        why = "its file system is read-only" if is_read_only else "this user may not"
        remedy = "Name a folder that this user can write in SEPTET_STATE_DIR."
        return Check("disk", "failed", f"{folder} cannot be written: {why}.", remedy)
    if full := full_disk(folder):
        return Check("disk", "failed", full, "Make room there, or name another folder in SEPTET_STATE_DIR.")
    message = f"{free:.0f} GiB are free for {state_dir}."
    if free >= _LEAST_FREE_GIB:
        return Check("disk", "ok", message)
    return Check("disk", "warning", message, "Make room there, or name another folder in SEPTET_STATE_DIR.")
