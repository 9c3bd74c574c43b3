"""A CLI's files in the user's home, and further logins that a worker's settings name.

`SEPTET_<AGENT>_LOGINS` names further logins as `NAME=PATH`. The path of a file leads to variables of the CLI, one
`NAME=value` in each line; the path of a folder leads to a CLI's home with a login.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from septet.agents.clis.adapter import Adapter, Machine, select_variables
from septet.errors import InvalidInputError
from septet.system.keys import is_key, key_values
from septet.system.masking import hide


def own_folders_by_name(adapter: Adapter, host: Machine) -> Mapping[str, Path]:
    """Return the folders with a CLI's login and sessions, by their usual names; the first has the sessions."""
    usual = adapter.capabilities.home[1]
    names = [str(Path(name).parent) for name in adapter.capabilities.login_files]
    own_names = [name for name in (names or [usual]) if name not in {"", "~"}]
    return {name.removeprefix("~/"): locate(adapter, host, name) for name in own_names}


def own_folders(adapter: Adapter, host: Machine) -> tuple[Path, ...]:
    """Return the user's folders with a CLI's login and sessions; make the first folder if it is missing.

    A session has to survive its run, even if the login is a key in a variable.
    """
    folders = tuple(own_folders_by_name(adapter, host).values())
    for folder in folders[:1]:
        with suppress(OSError):  # the CLI could not write to such a folder either
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folders


def own_packages(adapter: Adapter, host: Machine) -> tuple[Path, ...]:
    """Return the folders in the user's home into which a CLI has unpacked its packages."""
    paths = (locate(adapter, host, name) for name in adapter.capabilities.packages)
    return tuple(path for path in paths if path.is_dir() and any(path.iterdir()))


def locate(adapter: Adapter, host: Machine, name: str) -> Path:
    """Return the path of a CLI's file in the user's home; a variable may name another folder for the CLI.

    `name` is the usual path of the file, with `~` for the home.
    """
    variable, usual = adapter.capabilities.home
    moved = host.env.get(variable, "") if variable else ""
    is_moved = bool(moved) and Path(name).is_relative_to(usual)
    place = moved + name.removeprefix(usual) if is_moved else name
    user_home = Path(host.env.get("HOME") or Path.home())
    return user_home / place[2:] if place.startswith("~/") else Path(place)


def read_own_file(adapter: Adapter, host: Machine, name: str) -> bytes:
    """Return the content of the CLI's file that `locate` finds; empty if the file cannot be read."""
    try:
        return locate(adapter, host, name).read_bytes()
    except OSError:
        return b""


@dataclass(frozen=True, slots=True)
class NamedLogin:
    """A login of a CLI, and the environment in which the CLI uses this login."""

    name: str
    """The name; empty for the worker's own login."""
    machine: Machine
    folder: Path | None = None
    """The folder of a further login; `None` for a file of variables."""

    def identity(self, adapter: Adapter, provider: str = "") -> tuple[str, ...]:
        """Return the login's keys, each as `NAME=key`, so that hosts can compare logins; empty without keys."""
        keys = adapter.keys_of(self.machine, provider)
        return tuple(f"{name}={keys[name]}" for name in sorted(keys))


def read_login(adapter: Adapter, machine: Machine, name: str, path: Path) -> NamedLogin:
    """Return a further login of a CLI, from a file of variables or a folder, and mask its keys from now on.

    Raises:
        InvalidInputError: The login cannot be used; the message says why.
    """
    path = path.expanduser().absolute()
    own_keys = {
        each for each, value in select_variables(machine.env, adapter.login).items() if is_key(each, value)
    }
    keyless = {each: value for each, value in machine.env.items() if each not in own_keys}
    if path.is_dir():
        variable = adapter.capabilities.home[0]
        if not variable:
            message = (
                f"The login {name} of {adapter.name} is a folder, and {adapter.name} takes no other than its own."
            )
            raise InvalidInputError(message, remedy="Name a file with its variables instead.")
        return NamedLogin(name, replace(machine, env={**keyless, variable: str(path)}), path)
    variables = _read_variables(name, path)
    foreign = [each for each in variables if not select_variables({each: ""}, adapter.login)]
    if foreign or not all(variables.values()) or not variables:
        what = f"{foreign[0]}, which {adapter.name} does not take" if foreign else "no variable with a value"
        known = ", ".join(adapter.login) or "none"
        raise InvalidInputError(
            f"The login {name} of {adapter.name}, {path}, has {what}.", remedy=f"Write variables of it: {known}."
        )
    hide(key_values(variables))
    return NamedLogin(name, replace(machine, env={**keyless, **variables}))


def _read_variables(name: str, path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        message = f"The login {name} cannot be read from {path}: {why}."
        raise InvalidInputError(message, remedy="Name a file that the worker can read, or a folder.") from error
    pairs = [line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return {variable.strip(): value.strip().strip("\"'") for variable, _, value in pairs}
