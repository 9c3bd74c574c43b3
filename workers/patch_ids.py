"""Which patches a build has: a work order whose history holds another one waits under it."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from workers.build_id import import_closure

_CALLS: Final = frozenset({"patched", "deprecate_patch"})
_OF_0_1: Final = frozenset(
    {
        "board", "goes-on-beside", "late-cancel", "plan-gate", "project-while-it-waits", "readable-activity-ids",
        "row-in-memo", "told-at-a-reset", "watches-pull-request",
    }
)  # fmt: skip
_EARLIER: Final[Mapping[str, frozenset[str]]] = {"0.1.0": _OF_0_1, "0.1.1": _OF_0_1}
"""Those of releases that did not tell the server which they have."""
_BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")
"""Where a statement, or a case of one, has others."""
_RELEASE: Final = re.compile(r"(\d+\.\d+\.\d+)-")


def own_patches() -> frozenset[str]:
    """Return the ids of all patches that the workflows of this installation ask for or deprecate."""
    return patches_below(Path(__file__).resolve().parent.parent)


def earlier_patches(build: str) -> frozenset[str] | None:
    """Return the patches of a build of a release that did not tell them; `None` where it is none of those."""
    release = _RELEASE.match(build)
    return _EARLIER.get(release[1]) if release else None


@cache
def patches_below(root: Path) -> frozenset[str]:
    """Return the patches of the workflows below a folder. Their code is read, not carried out.

    Only modules with the name of such a call in their text are parsed: each worker does this as it starts.

    Raises:
        ValueError: The id of a patch is neither a text nor a module's constant.
    """
    code = Code({name: path.read_bytes() for name, path in import_closure(root).items()})
    asks = _CALLS.union(*map(_wrappers_in, code.trees_with(_CALLS).values()))
    return frozenset(
        code.id_of(argument, name)
        for name, tree in code.trees_with(asks).items()
        for argument in _patch_arguments(tree, asks)
    )


class Code:
    """The modules that workflows import, parsed as they are asked for."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources
        self._trees: dict[str, ast.Module] = {}

    def trees_with(self, names: Iterable[str]) -> dict[str, ast.Module]:
        """Return the modules whose text has one of these names, by name."""
        words = [name.encode() for name in names]
        found = [name for name, text in self._sources.items() if any(word in text for word in words)]
        return {name: self._tree(name) for name in found}

    def id_of(self, argument: ast.expr, module: str) -> str:
        """Return the text of an id, of a constant, or of one that is imported.

        Raises:
            ValueError: It is none of these.
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


def _wrappers_in(tree: ast.Module) -> Iterator[str]:
    """Yield the names of functions that ask for a patch whose id they are given."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            parameters = {each.arg for each in function.args.args}
            ids = (each for each in _asked_ids(function, _CALLS) if isinstance(each, ast.Name))
            if any(each.id in parameters for each in ids):
                yield function.name


def _patch_arguments(tree: ast.Module, asks: frozenset[str]) -> Iterator[ast.expr]:
    """Yield the id in each call that asks for a patch, but for the parameters of what wraps such a call."""
    wrapped = {
        argument
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name in asks
        for argument in _asked_ids(function, asks)
        if isinstance(argument, ast.Name) and argument.id in {each.arg for each in function.args.args}
    }
    yield from (argument for argument in _asked_ids(tree, asks) if argument not in wrapped)


def _asked_ids(part: ast.AST, asks: frozenset[str]) -> Iterator[ast.expr]:
    """Yield the first argument of each call of these functions, of the SDK's as `workflow.patched(…)` alone."""
    for node in ast.walk(part):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func
        if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) and name.value.id == "workflow":
            if name.attr in _CALLS:
                yield node.args[0]
        elif isinstance(name, ast.Name) and name.id in asks - _CALLS:
            yield node.args[0]


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the texts that a module gives a name."""
    for node in tree.body:
        target: ast.expr | None = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            (target,) = node.targets
        if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign):
            value = node.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield target.id, value.value


def _imported_names(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Yield module, name and name here of what a module imports from others."""
    for node in _statements_of(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for each in node.names:
                yield node.module, each.name, each.asname or each.name


def _statements_of(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements, however deep: a walk through their expressions takes five times as long."""
    for block in _BLOCKS:
        for node in getattr(tree, block, ()):
            yield node
            yield from _statements_of(node)
