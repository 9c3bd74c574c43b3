"""Find the programs of a repository's commands that guests do not see, and the setting that shows them."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.agents.guest.description import GuestFiles
from septet.agents.guest.programs import Needs
from septet.agents.guest.toolchains import toolchain_paths
from septet.agents.sandbox.sandbox import Sandbox

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
"""The script that prints the names of missing programs. A `=` precedes each name, because the guest would see the
file of a bare path."""
_SHELL: Final = "/bin/sh"
_LOOK_SECONDS: Final = 30.0
_NOWHERE: Final = "Install it where the worker runs, or correct its name."
_MOST_NAMES: Final = 100


@dataclass(frozen=True, slots=True)
class MissingProgram:
    """A program that guests do not find, with a message and a remedy."""

    name: str
    message: str
    remedy: str


def missing_programs(
    sandbox: Sandbox, folder: Path, env: Mapping[str, str], commands: Sequence[Sequence[str]], what: str
) -> Iterator[MissingProgram]:
    """Yield each program of a repository's commands that guests do not find, once.

    Paths relative to the repository are not checked: set-up or an agent may make the file later. The messages
    name the kind of the commands as `what`.

    Raises:
        OSError: No guest could be started.
    """
    named = dict.fromkeys(argv[0] for argv in commands)
    names = [name for name in named if os.sep not in name or name.startswith(os.sep)][:_MOST_NAMES]
    for name in _unseen(sandbox, folder, env, names) if names else ():
        yield _describe(sandbox, env, name, what)


def _unseen(sandbox: Sandbox, folder: Path, env: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return the names that a guest does not find; empty if no guest can check."""
    if not sandbox.confines:
        return [name for name in names if shutil.which(name, path=env.get("PATH", os.defpath)) is None]
    argv = (_SHELL, "-c", _LOOK, "look", *(f"={name}" for name in names))
    done = sandbox.run(argv, GuestFiles(folder, env=env), sandbox.environment(env), _LOOK_SECONDS)
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
