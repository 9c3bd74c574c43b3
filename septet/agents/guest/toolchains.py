"""The toolchains in a user's home that the worker's PATH names; guests see their programs, but no logins.

Each `Toolchain` names folders with programs and libraries. Other files stay hidden, because they may hold logins,
such as cargo's `credentials.toml` or pip's `pip.conf`. A folder without other files is shown as a whole, because
each mount delays the start of a guest by 0.2 ms.

The found paths are cached until a searched folder changes.
"""

import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_VERSION: Final = ("bin", "include", "lib", "libexec", "share")
"""The folders of a version of a language, without `etc` and single files, which hold settings and logins."""

_HARMLESS: Final = frozenset({"CHANGELOG.md", "LICENSE", "README.md"})
"""The names of files that may lie next to programs and libraries, and that never hold logins."""
_SETTLED_NS: Final = 1_000_000_000
"""The nanoseconds after a folder's change within which another change may leave the folder's time the same."""
_MOST_KNOWN: Final = 16
_DATA: Final = ".local/share"
"""The folder that `XDG_DATA_HOME` replaces."""


def _of_each(pattern: str, *others: str) -> tuple[str, ...]:
    return tuple(f"{pattern}/{name}" for name in (*_VERSION, *others))


def _with_shims(settings: str) -> tuple[str, ...]:
    """Return the `shown` patterns of a tool such as pyenv; `settings` is a folder such as `pyenv.d`."""
    own = ("bin", "libexec", "shims", settings, "version")
    plugins = ("plugins/*/bin", "plugins/*/etc", "plugins/*/libexec", "plugins/*/shims")
    versions = (*_of_each("versions/*", "pyvenv.cfg"), *_of_each("versions/*/envs/*", "pyvenv.cfg"))
    return (*own, *plugins, *versions)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A tool that installs languages in a user's home."""

    place: str
    """The usual folder of the toolchain in the home."""
    shown: tuple[str, ...]
    """The patterns of the paths that guests see."""
    variable: str = ""
    """The variable that names another folder, and that guests get too; empty if there is none."""
    programs: tuple[str, ...] = ()
    """Programs on PATH that also make guests see the toolchain; guests see the programs too."""


TOOLCHAINS: Final = (
    Toolchain(".cargo", ("bin",)),
    Toolchain(".rustup", ("settings.toml", "toolchains"), "RUSTUP_HOME", ("rustup",)),
    Toolchain(".pyenv", _with_shims("pyenv.d"), "PYENV_ROOT"),
    Toolchain(".rbenv", _with_shims("rbenv.d"), "RBENV_ROOT"),
    Toolchain(".nodenv", _with_shims("nodenv.d"), "NODENV_ROOT"),
    Toolchain(".nvm", _of_each("versions/*/*"), "NVM_DIR"),
    Toolchain(".local/share/fnm", _of_each("node-versions/*/installation"), "FNM_DIR"),
    Toolchain(
        ".volta",
        ("bin", "tools/user", *_of_each("tools/image/node/*"), "tools/image/npm/*", "tools/image/pnpm/*",
         "tools/image/yarn/*", *_of_each("tools/image/packages/*")),
        "VOLTA_HOME",
    ),
    Toolchain(
        ".local/share/uv",
        (*_of_each("python/*"), *_of_each("tools/*", "pyvenv.cfg")),
        programs=("uv", "uvx"),
    ),
    Toolchain(
        ".asdf",
        ("bin", "lib", "shims", "plugins/*/bin", "plugins/*/lib",
         *_of_each("installs/*/*", "conf", "go", "jmods", "pyvenv.cfg")),
        "ASDF_DATA_DIR",
        ("asdf",),
    ),
    Toolchain(
        ".local/share/mise",
        ("shims", "plugins/*/bin", "plugins/*/lib",
         *_of_each("installs/*/*", "conf", "go", "jmods", "pyvenv.cfg")),
        "MISE_DATA_DIR",
        ("mise",),
    ),
    Toolchain(
        ".sdkman",
        (*_of_each("candidates/*/*", "boot"), "candidates/java/*/conf", "candidates/java/*/jmods"),
        "SDKMAN_DIR",
    ),
    Toolchain(".bun", ("bin",)),
    Toolchain(".deno", ("bin",)),
)  # fmt: skip
"""The toolchains as their documents describe them; for a new row, the tests need a fake login to hide."""


@dataclass(frozen=True, slots=True)
class _Look:
    """The toolchains that a search has found in a home, and the folders that were searched."""

    found: dict[Path, list[Path]]
    folders: dict[str, tuple[int, ...] | None]
    """The searched folders, each with a state that changes with the entries of the folder; `None` for a missing
    folder."""


_known: Final[dict[tuple[str, ...], _Look]] = {}
"""The searches of this process, by home, PATH and the toolchains' variables."""


def toolchain_paths(home: Path, env: Mapping[str, str]) -> Iterator[Path]:
    """Yield the paths in a user's toolchains that guests see."""
    for shown in find_toolchains(home, env).values():
        yield from shown


def find_toolchains(home: Path, env: Mapping[str, str]) -> dict[Path, list[Path]]:
    """Find the toolchains that PATH names; return their folders, each with the paths in it that guests see."""
    variables = ("PATH", "XDG_DATA_HOME", *(each.variable for each in TOOLCHAINS if each.variable))
    asked = (str(home), *(env.get(name, "") for name in variables))
    known = _known.get(asked)
    if known is not None and all(_state_of(path) == state for path, state in known.folders.items()):
        return known.found
    began_ns = time.time_ns()
    look = _look(home, env)
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    is_settled = all(state is None or state[0] < began_ns - _SETTLED_NS for state in look.folders.values())
    if is_settled:
        _known[asked] = look
    return look.found


def _look(home: Path, env: Mapping[str, str]) -> _Look:
    search_path, found = env.get("PATH", ""), dict[Path, list[Path]]()
    folders = {entry: _state_of(entry) for entry in search_path.split(os.pathsep) if entry.startswith(os.sep)}
    entries = [Path(entry) for entry in search_path.split(os.pathsep) if entry.startswith(os.sep)]
    for toolchain in TOOLCHAINS:
        root = _root_of(toolchain, home, env)
        folders[str(root)] = _state_of(str(root))
        if not root.is_dir():
            continue
        programs = [Path(path) for name in toolchain.programs if (path := shutil.which(name, path=search_path))]
        # An entry may lead there through links: fnm makes a link for each shell.
        inside = [each for each in entries if each.is_relative_to(root) or _is_within(each, [root])]
        holds_home = home.is_relative_to(root) or _is_within(home, [root])
        if not (programs or inside) or holds_home:
            continue
        shown = [path for pattern in toolchain.shown for path in sorted(root.glob(pattern))]
        holders = _holders(root, toolchain.shown)
        folders |= {str(path): _state_of(str(path)) for path in holders}
        shown = _outermost(shown, holders)
        links = [each for each in inside if not each.is_relative_to(root) and _is_within(each, shown)]
        found[root] = [*programs, *shown, *links]
    return _Look(found, folders)


def _state_of(path: str) -> tuple[int, ...] | None:
    """Return numbers that change when a folder's entries change; `None` for a missing folder."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_ino, facts.st_dev


def _holders(root: Path, patterns: Collection[str]) -> list[Path]:
    """Return the folders between `root` and the paths: for `versions/*/bin`, `versions` and `versions/*`."""
    parts = [pattern.split("/") for pattern in patterns]
    starts = dict.fromkeys("/".join(each[:end]) for each in parts for end in range(1, len(each)))
    return [path for start in starts for path in root.glob(start) if path.is_dir()]


def _outermost(paths: list[Path], holders: Collection[Path]) -> list[Path]:
    """Return `paths`; if guests may see all entries of a folder in `holders`, the folder replaces the entries.

    Links stay in the result, because the guest has to see their targets too.
    """
    kept = dict.fromkeys(paths)
    for folder in sorted(holders, key=lambda folder: -len(folder.parts)):
        inside = set(folder.iterdir())
        if inside and all(each in kept or each.name in _HARMLESS for each in inside):
            kept = dict.fromkeys(each for each in kept if each not in inside or each.is_symlink()) | {folder: None}
    return list(kept)


def _root_of(toolchain: Toolchain, home: Path, env: Mapping[str, str]) -> Path:
    data = env.get("XDG_DATA_HOME")
    usual = home / toolchain.place
    if data and usual.is_relative_to(home / _DATA):
        usual = Path(data) / usual.relative_to(home / _DATA)
    return Path(env.get(toolchain.variable) or usual)


def _is_within(entry: Path, folders: list[Path]) -> bool:
    real = Path(os.path.realpath(entry))
    return any(real.is_relative_to(os.path.realpath(path)) for path in folders)
