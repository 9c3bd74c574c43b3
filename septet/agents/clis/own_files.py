"""A CLI's own files in the user's home."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from septet.agents.clis.adapter import Adapter, Machine


def own_folders_by_name(adapter: Adapter, host: Machine) -> Mapping[str, Path]:
    """Return the folders with a CLI's login and sessions, by their usual names; the first has the sessions."""
    usual = adapter.capabilities.home[1]
    names = [str(Path(name).parent) for name in adapter.capabilities.login_files]
    own_names = [name for name in (names or [usual]) if name not in {"", "~"}]
    return {name.removeprefix("~/"): locate(adapter, host, name) for name in own_names}


def own_folders(adapter: Adapter, host: Machine) -> tuple[Path, ...]:
    """Return the user's folders with a CLI's login and sessions; make the first folder if it is missing.

    The first folder is needed even if the login is a key in a variable, because sessions survive in it.
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
    """Return the path of a CLI's file: in the user's home, or in the folder that the CLI's variable names.

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
