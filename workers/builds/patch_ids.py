"""The patches of a build: a work order whose history has another patch waits under that build."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from workers.builds.build_id import ROOT, import_closure

_CALLS: Final = frozenset({"patched", "deprecate_patch"})
_BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of a statement, or of a case of a statement, that hold further statements."""


def own_patches() -> frozenset[str]:
    """Return the ids of all patches that the workflows of this installation use or deprecate."""
    return patches_below(ROOT)


@cache
def patches_below(root: Path) -> frozenset[str]:
    """Return the patches of the workflows below a folder, from their code without running it.

    This parses only modules whose text names a call of a patch, because each worker calls this at its start.

    Raises:
        ValueError: The id of a patch is neither a text nor a module's constant.
    """
    code = Code({name: path.read_bytes() for name, path in import_closure(root).items()})
    return frozenset(
        code.id_of(argument, name)
        for name, tree in code.trees_with(_CALLS).items()
        for argument in _patch_arguments(tree)
    )


class Code:
    """The modules that workflows import, parsed on first use."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources
        self._trees: dict[str, ast.Module] = {}

    def trees_with(self, names: Iterable[str]) -> dict[str, ast.Module]:
        """Return the modules whose text contains one of `names`, by the names of the modules."""
        words = [name.encode() for name in names]
        found = [name for name, text in self._sources.items() if any(word in text for word in words)]
        return {name: self._tree(name) for name in found}

    def id_of(self, argument: ast.expr, module: str) -> str:
        """Return the text of an id: a literal, a constant, or an imported constant.

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
    """Yield the names and values of a module's text constants."""
    for node in tree.body:
        target: ast.expr | None = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            (target,) = node.targets
        if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign):
            value = node.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield target.id, value.value


def _imported_names(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Yield module, name and local name of each import of a module."""
    for node in _statements_of(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for each in node.names:
                yield node.module, each.name, each.asname or each.name


def _statements_of(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements at any depth, without their expressions: `ast.walk` would take five times as long."""
    for block in _BLOCKS:
        for node in getattr(tree, block, ()):
            yield node
            yield from _statements_of(node)
