"""Names say what they name: no two public classes share one, and no function or parameter is a participle alone."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("septet", "activities", "workflows", "workers", "clients")

PARTICIPLES = frozenset(
    """
    accepted added allowed announced answered applied asked awaited begun blocked born borne borrowed bound bounded
    bought bounced broken brought built called cancelled carried changed checked chosen claimed cleaned cleared closed
    collected come committed compared completed concluded connected copied counted created decided decoded deferred
    deleted denied derived described dialled displaced done doomed drawn dropped elapsed encoded ended entered
    estimated excused executed expected explained failed fed felt fenced fetched filled finalized finished forgotten
    forked found freed given gone granted grown guarded guessed heard held hidden indented interrupted joined kept
    known labelled laid launched left lent linked listed loaded locked looked lost made marked masked matched meant
    mended merged met mounted moved named noted offered opened ordered owed packed paid painted parsed passed paused
    placed planned posted prepared printed promised protected proven pulled pushed quoted reached received recorded
    refused released remembered removed renamed renewed replaced resolved restored resumed returned saved said sealed
    secured seen sent served settled shown signed skipped sold sorted sought spelled spent spoiled spoken squeezed
    started stood stopped stored struck styled summarised superseded taken taught thought told tolerated toured traced
    triaged trimmed tried truncated trusted tuned typed unbound understood unfenced unfinished unhurried unmerged
    unnamed unreleased unwrapped used verified waited wanted warned watched woken won worn written
    """.split()  # noqa: SIM905 -- a list with a word a line would fill three screens
)
"""By list, and not by their ending: `need` and `seed` end like one, `run`, `read` and `put` are verbs as well, and
`ignored` and `structured` are words of git and of the agents' CLIs."""

ALLOWED = {
    "diagnosed": "an error as it is once its cause is known: the one word for it",
}


@cache
def sources() -> dict[str, ast.Module]:
    """Return every module of the product by its path."""
    files = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in files}


def test_no_two_public_classes_have_one_name() -> None:
    """A class's name says which one it is, wherever one reads it."""
    names = Counter(
        node.name
        for tree in sources().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, times in names.items() if times > 1] == []


def test_no_name_is_a_participle_alone() -> None:
    """`told` says that something was told and not what it is: functions are verbs, parameters and modules nouns."""
    assert [
        f"{path}:{line}: {name}"
        for path, tree in sources().items()
        for name, line in [(Path(path).stem, 1), *names_in(tree)]
        if name.strip("_") in PARTICIPLES and name not in ALLOWED
    ] == []


def names_in(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names of functions and parameters with their lines; a handler's name is wire, and frozen elsewhere."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not any(is_handler(decorator) for decorator in node.decorator_list):
                yield node.name, node.lineno
            for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                yield parameter.arg, parameter.lineno


def is_handler(decorator: ast.expr) -> bool:
    """Say whether a decorator makes a function a signal, a query or an update of a workflow."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called) in {"workflow.signal", "workflow.query", "workflow.update"}
