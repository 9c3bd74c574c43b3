"""What a CLI has of its own in the user's home: its login, its sessions, and what it unpacks of itself."""

from contextlib import suppress
from pathlib import Path

from septet.agents.clis.adapter import Adapter, Machine


def own_folders(adapter: Adapter, host: Machine) -> tuple[Path, ...]:
    """Return the folders of a CLI's login and sessions; the first one is made where it is not there.

    A session has to outlive its run, also with a key in a variable and no login on disk.
    """
    facts, user_home = adapter.capabilities, _user_home(host)
    variable, usual = facts.home
    moved = host.env.get(variable, "") if variable else ""
    names = [name.replace(usual, moved, 1) if moved else name for name in facts.login_files]
    parents = [_expand(name, user_home).parent for name in names]
    if not names and usual:
        parents = [_expand(moved or usual, user_home)]
    folders = tuple(dict.fromkeys(parent for parent in parents if parent != user_home))
    for folder in folders[:1]:
        with suppress(OSError):  # what cannot be made the CLI cannot write to either
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folders


def own_packages(adapter: Adapter, host: Machine) -> tuple[Path, ...]:
    """Return what a CLI has unpacked of itself in the user's home, where it is there."""
    paths = (_expand(name, _user_home(host)) for name in adapter.capabilities.packages)
    return tuple(path for path in paths if path.is_dir())


def _user_home(host: Machine) -> Path:
    return Path(host.env.get("HOME") or Path.home())


def _expand(name: str, user_home: Path) -> Path:
    return user_home / name[2:] if name.startswith("~/") else Path(name)
