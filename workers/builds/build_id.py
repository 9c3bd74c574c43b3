"""The id of a build (a hash of all code that workflows run), and the ids of the patches in this code."""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Final

from septet.settings import Settings

ROOT: Final = Path(__file__).resolve().parents[2]
"""The folder with all packages of this installation."""
_OURS: Final = frozenset({"septet", "workflows"})
"""The only packages of Septet that workflows import."""
_IMPORT: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b[ \t]*(\([^)]*\)|.*)|import[ \t]+(.*))", re.MULTILINE
)
"""An import statement. After `from`, the first group is the package and the second the imported names; otherwise
the last group is the list of modules."""
_NAME: Final = re.compile(r"[\w.]+")


def build_id(settings: Settings) -> str:
    """Return the id of this build: `SEPTET_BUILD_ID`, or else the release with a hash of the workflows' code."""
    if settings.build_id is not None:
        return settings.build_id
    return f"{version('septet')}-{_hash_of(ROOT)}"


@cache
def import_closure(root: Path) -> Mapping[str, Path]:
    """Return the files of all modules that workflows import directly or indirectly, by module name.

    The code is read, not executed; imports inside functions count too.
    """
    closure: dict[str, Path] = {}
    names = [*_modules_below(root / "workflows")]
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
    return digest.hexdigest()[:8]


def _modules_below(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _path_of(root: Path, name: str) -> Path | None:
    """Return the file of a module of Septet; `None` for any other name."""
    if name.partition(".")[0] not in _OURS:
        return None
    stem = root.joinpath(*name.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


def imports_of(code: str) -> Iterator[str]:
    """Yield all names that `code` imports and that may be modules; for `from a import b`, both `a` and `a.b`.

    This reads lines, because parsing would take a tenth of a worker's start. The result may include words of
    docstrings.
    """
    for package, names, modules in _IMPORT.findall(code):
        yield from _NAME.findall(modules)
        if package:
            yield package
            yield from (f"{package}.{name}" for name in _NAME.findall(names))


_CALLS: Final = frozenset({"patched", "deprecate_patch"})
_BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of a syntax node that hold further statements."""


def own_patches() -> frozenset[str]:
    """Return the ids of all patches in this installation's workflows."""
    return patches_below(ROOT)


@cache
def patches_below(root: Path) -> frozenset[str]:
    """Read the workflows' code below a folder, and return the ids of the patches in this code.

    Raises:
        ValueError: The id of a patch is neither a literal nor a module's constant.
    """
    code = Code({name: path.read_bytes() for name, path in import_closure(root).items()})
    return frozenset(
        code.id_of(argument, name)
        for name, tree in code.trees_with(_CALLS).items()
        for argument in _patch_arguments(tree)
    )


class Code:
    """The modules that workflows import, which are parsed only when needed."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources
        self._trees: dict[str, ast.Module] = {}

    def trees_with(self, names: Iterable[str]) -> dict[str, ast.Module]:
        """Return the parsed modules whose text contains any of the words `names`, by module name."""
        words = [name.encode() for name in names]
        found = [name for name, text in self._sources.items() if any(word in text for word in words)]
        return {name: self._tree(name) for name in found}

    def id_of(self, argument: ast.expr, module: str) -> str:
        """Return a patch's id from the argument of its call: a literal, a constant, or an imported constant.

        Raises:
            ValueError: The argument is neither a literal nor a constant.
        """
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            return argument.value
        if isinstance(argument, ast.Name):
            imported = {here: (there, original) for there, original, here in _imported_names(self._tree(module))}
            home, name = imported.get(argument.id, (module, argument.id))
            if home in self._sources and name in (constants := dict(_constants(self._tree(home)))):
                return constants[name]
        raise ValueError(f"The id of a patch is not a constant: {module}, line {argument.lineno}.")

    def _tree(self, name: str) -> ast.Module:
        if name not in self._trees:
            self._trees[name] = ast.parse(self._sources[name])
        return self._trees[name]


def _patch_arguments(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the first argument of each call `workflow.patched(…)` and `workflow.deprecate_patch(…)`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.func, ast.Attribute):
            continue
        owner = node.func.value
        if node.func.attr in _CALLS and isinstance(owner, ast.Name) and owner.id == "workflow":
            yield node.args[0]


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        target: ast.expr | None = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            (target,) = node.targets
        if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign):
            value = node.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield target.id, value.value


def _imported_names(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    for node in _statements_of(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for each in node.names:
                yield node.module, each.name, each.asname or each.name


def _statements_of(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements at any depth, without expressions: `ast.walk` would take five times as long."""
    for block in _BLOCKS:
        for node in getattr(tree, block, ()):
            yield node
            yield from _statements_of(node)
