"""What the fields of a model are for, as the docstrings below them say it."""

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from inspect import cleandoc, get_annotations
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

_NO_DOCS: Mapping[str, str] = MappingProxyType({})


def docs_of_fields(model: type) -> Mapping[str, str]:
    """Return the docstrings of a model's fields, by name; those of inherited fields too.

    It reads the source. Pydantic can do that as it makes the class (`use_attribute_docstrings`), which took a
    worker's start a tenth of its time; few programs ever ask.
    """
    docs: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        for name in get_annotations(kind):
            docs.pop(name, None)  # a field that is declared anew does not mean what it meant
        docs |= _docs_in(kind.__module__).get(kind.__qualname__, _NO_DOCS)
    return docs


@cache
def _docs_in(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of a module's classes, by class and name."""
    source = getattr(sys.modules.get(module), "__file__", None)
    if source is None:
        return MappingProxyType({})
    return MappingProxyType(
        {
            node.name: dict(_docs_below(node))
            for node in ast.parse(Path(source).read_bytes()).body
            if isinstance(node, ast.ClassDef)
        }
    )


def _docs_below(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, doc in pairwise(node.body):
        match field, doc:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                yield name, cleandoc(words)
