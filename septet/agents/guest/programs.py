"""The files that a program needs to start: the program, its packages, its interpreter, and links to them."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from septet.agents.guest.paths import OwnFolder, PlacedInOwnFolder
from septet.agents.guest.sandbox_parts import SYSTEM_FOLDERS, Binding, Link

_VISIBLE: Final = (*map(Path, SYSTEM_FOLDERS), Path("/proc"), Path("/dev"))
"""The folders that every guest sees, either the machine's folders or private ones."""
_USERS_OWN: Final = ".local"
"""The folder in a home with the user's own programs and their data."""
_MOST_LINKS: Final = 40
_MOST_INTERPRETERS: Final = 4
_LONGEST_PATH_BYTES: Final = 4096
_FILES_IN_VARIABLES: Final = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "GOOGLE_APPLICATION_CREDENTIALS",
    "SEPTET_SCRIPTED_SCENARIO",
)  # fmt: skip
"""Variables whose values are files that a program reads."""


@dataclass(slots=True)
class Needs:
    """Collects the files that a guest has to see: real paths to mount, and links that lead to these paths."""

    search_path: str
    """The PATH in which a script's interpreter is searched."""
    home: Path | None = None
    """The user's home, which is never bound as a whole."""
    paths: list[Path] = field(default_factory=list)
    links: dict[Path, str] = field(default_factory=dict)
    _targets: dict[str, str | None] = field(default_factory=dict)

    def add_all(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Add the files that a guest has to see so that a program starts.

        `argv` has the program's absolute path, then words that may name files. The files of programs that this
        program starts are not added.
        """
        if argv and Path(argv[0]).is_absolute():
            self.add_program(Path(argv[0]))
        for word in (*argv[1:], *(env.get(name, "") for name in _FILES_IN_VARIABLES)):
            if word.startswith(os.sep) and len(os.fsencode(word)) < _LONGEST_PATH_BYTES and Path(word).exists():
                self.add(Path(word))

    def add(self, path: Path) -> None:
        """Add a path, with every link that leads to the path."""
        real = self.trace(path)
        if real not in self.paths:
            self.paths.append(real)

    def trace(self, path: Path) -> Path:
        """Add the links that lead to a path, and return the real path."""
        current, rest, links = "/", list(path.parts[1:]), 0
        while rest:
            part = rest.pop(0)
            current = os.path.dirname(current) if part == ".." else os.path.join(current, part)
            target = self._target_of(current) if links < _MOST_LINKS else None
            if target is not None:
                links += 1
                self.links[Path(current)] = str(Path(target))
                current = "/" if target.startswith("/") else os.path.dirname(current)
                rest = [*Path(target.lstrip("/")).parts, *rest]
        return Path(current)

    def _target_of(self, path: str) -> str | None:
        if path not in self._targets:
            try:
                self._targets[path] = os.readlink(path)
            except OSError:
                self._targets[path] = None
        return self._targets[path]

    def add_program(self, path: Path, depth: int = 0) -> None:
        """Add a program with its packages, and the interpreter that its first line names."""
        real = self.trace(path)
        for part in _packages_of(path, real):
            for each in [part] if self._may_be_whole(part) else _python_in(part):
                self.add(each)
        self.add(path)
        interpreter = _interpreter(real, self.search_path)
        if interpreter is not None and depth < _MOST_INTERPRETERS:
            self.add_program(interpreter, depth + 1)

    def _may_be_whole(self, place: Path) -> bool:
        """Return whether a folder may be mounted as a whole; false for a folder that contains the user's home."""
        if self.home is None:
            return True
        home, place = self.home.resolve(), place.resolve()
        return not home.is_relative_to(place) and place != (home / _USERS_OWN).resolve()

    def bindings(self, visible: Sequence[Path]) -> tuple[Binding, ...]:
        """Return mounts of the collected paths, except paths inside `visible` or inside another mount."""
        return tuple(map(Binding, self._roots(visible)))

    def placed_in(self, home_folders: Sequence[OwnFolder]) -> Iterator[PlacedInOwnFolder]:
        """Yield mounts for the collected files that lie in folders which the guest's home replaces."""
        for folder in home_folders:
            for path in self._roots((), within=folder.path):
                yield PlacedInOwnFolder(path, folder, path.relative_to(folder.path))
            for link in self.links:
                if folder.path in link.parents:
                    yield PlacedInOwnFolder(link.resolve(), folder, link.relative_to(folder.path))

    def made_links(self, visible: Sequence[Path]) -> tuple[Link, ...]:
        """Return the links outside all mounts, which bubblewrap has to make."""
        bound = _prefixes((*_VISIBLE, *visible, *self._roots(visible)))
        return tuple(Link(*each) for each in self.links.items() if not f"{each[0]}/".startswith(bound))

    def _roots(self, visible: Sequence[Path], within: Path = Path("/")) -> list[Path]:
        roots, prefixes = list[Path](), _prefixes((*_VISIBLE, *visible))
        beginning = _prefixes((within,))[0]
        for path in sorted(self.paths, key=lambda path: len(path.parts)):
            text = f"{path}/"  # for hundreds of paths a comparison of texts is faster
            if path != within and text.startswith(beginning) and not text.startswith(prefixes):
                roots.append(path)
                prefixes += _prefixes((path,))
        return roots


def _prefixes(folders: Sequence[Path]) -> tuple[str, ...]:
    """Return each folder as text with a slash at the end; paths in the folder begin with this text."""
    return tuple(f"{str(folder).rstrip('/')}/" for folder in folders)


def _packages_of(path: Path, real: Path) -> Iterator[Path]:
    """Yield the folders of which a program is a part: node's modules, a wheel's libraries, Python environments."""
    modules = [parent for parent in real.parents if parent.name == "node_modules"]
    yield from modules[-1:]
    for place in {path.parent.parent, real.parent.parent}:
        if (libraries := Path(f"{place}.libs")).is_dir():
            yield libraries
        settings = place / "pyvenv.cfg"
        if settings.is_file():
            yield place
            yield from _editable_packages(place)
        elif real.name.startswith("python") and any(place.glob("lib/python3*")):
            yield place


def _python_in(place: Path) -> Iterator[Path]:
    """Yield the files of a Python installation in a folder that also has other files."""
    for pattern in ("pyvenv.cfg", "bin/python*", "lib/python3*", "lib/libpython3*"):
        yield from place.glob(pattern)


@lru_cache(maxsize=32)
def _editable_packages(environment: Path) -> tuple[Path, ...]:
    """Return the folders outside a virtual environment that add packages to it; cache the result."""
    listings = sorted(environment.glob("lib/python3*/site-packages/*.pth"))
    lines = (line for path in listings for line in path.read_text("utf-8", errors="replace").splitlines())
    return tuple(Path(line) for line in lines if line.startswith(os.sep) and Path(line).is_dir())


def _interpreter(program: Path, search_path: str) -> Path | None:
    """Return the interpreter that a script's first line names; `None` for a program that is no script."""
    try:
        with program.open("rb") as file:
            line = file.read(256).partition(b"\n")[0]
    except OSError:
        return None
    words = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
    if words and Path(words[0]).name == "env":
        name = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        found = shutil.which(name, path=search_path) if name else None
        return Path(found) if found is not None else None
    return Path(words[0]) if words and Path(words[0]).is_absolute() else None
