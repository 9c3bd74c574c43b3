"""The id of a build: its release, and a hash of all the code that its workflows run."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Final

from septet.settings import Settings

ROOT: Final = Path(__file__).resolve().parents[2]
"""The folder of all packages of this installation."""
_HASH_LENGTH: Final = 8
_FIRST: Final = "workflows"
_OURS: Final = frozenset({"septet", "workflows"})
"""The only packages of Septet that workflows import: workflows name activities by stubs."""
_IMPORT: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b[ \t]*(\([^)]*\)|.*)|import[ \t]+(.*))", re.MULTILINE
)
"""The first group is the package of `from a import b, c`, the second its names, also over several lines; for
`import a`, the last group holds the modules."""
_NAME: Final = re.compile(r"[\w.]+")


def build_id(settings: Settings) -> str:
    """Return the id of this build: `SEPTET_BUILD_ID`, or else the release with a hash of the workflows' code."""
    if settings.build_id is not None:
        return settings.build_id
    return f"{version('septet')}-{_hash_of(ROOT)}"


@cache
def import_closure(root: Path) -> Mapping[str, Path]:
    """Return the files of the workflows, of the modules that they import, and of their packages, by name.

    This reads the imports and executes none; an import inside a function counts too.
    """
    closure: dict[str, Path] = {}
    names = [*_modules_below(root / _FIRST)]
    while names:
        name = names.pop()
        if name in closure or (path := _path_of(root, name)) is None:
            continue
        closure[name] = path
        names += [name.rpartition(".")[0], *imports_of(path.read_text(encoding="utf-8"))]
    return MappingProxyType(dict(sorted(closure.items())))


@cache
def _hash_of(root: Path) -> str:
    digest = hashlib.sha256()
    for name, path in import_closure(root).items():
        code = path.read_bytes()
        digest.update(f"{name} {len(code)}\n".encode() + code)
    return digest.hexdigest()[:_HASH_LENGTH]


def _modules_below(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _path_of(root: Path, name: str) -> Path | None:
    """Return the file of a module or package of Septet; `None` for another name."""
    if name.partition(".")[0] not in _OURS:
        return None
    stem = root.joinpath(*name.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


def imports_of(code: str) -> Iterator[str]:
    """Yield every name that may be the name of a module: for `from a import b`, both `a` and `a.b`.

    This reads lines and does not parse: parsing would take a tenth of a worker's start. A word of a docstring may
    be yielded too, but matches no file.
    """
    for package, names, modules in _IMPORT.findall(code):
        yield from _NAME.findall(modules)
        if package:
            yield package
            yield from (f"{package}.{name}" for name in _NAME.findall(names))
