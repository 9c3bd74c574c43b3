"""A worker's logins for a CLI, in order: its own login, and the further logins of its settings.

`SEPTET_<AGENT>_LOGINS` names further logins as `NAME=PATH`. A file holds variables of the CLI, one `NAME=value` a
line; a folder is a CLI's home with a login.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from septet.agents.clis.adapter import Adapter, Machine, select_variables
from septet.errors import InvalidInputError
from septet.system.keys import is_key, key_values
from septet.system.masking import hide

_COMMENT: Final = "#"


@dataclass(frozen=True, slots=True)
class NamedLogin:
    """A login, with the machine as the CLI sees it with this login."""

    name: str
    """The name; empty for the worker's own login."""
    machine: Machine
    folder: Path | None = None
    """The folder of a further login; `None` for a file of variables."""

    def identity(self, adapter: Adapter, provider: str = "") -> tuple[str, ...]:
        """Return texts that identify the login's keys, equal on hosts with the same keys; empty without keys."""
        keys = adapter.keys_of(self.machine, provider)
        return tuple(f"{name}={keys[name]}" for name in sorted(keys))


def read_login(adapter: Adapter, machine: Machine, name: str, path: Path) -> NamedLogin:
    """Return a further login of a CLI, from a file of variables or a folder; its keys are masked from then on.

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
    pairs = [line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith(_COMMENT)]
    return {variable.strip(): value.strip().strip("\"'") for variable, _, value in pairs}
