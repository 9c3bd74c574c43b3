"""Names of the product: no two public classes share a name, and no function or parameter is a bare participle."""

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
"""The participles, as a list, since endings mislead: `need` and `seed` end like a participle, and `run`, `read`
and `put` are verbs as well. `ignored` and `structured` are words of git and of the agents' CLIs."""

ALLOWED = {
    "diagnosed": "an error as it is once its cause is known: the one word for it",
}


@cache
def sources() -> dict[str, ast.Module]:
    files = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in files}


def test_no_two_public_classes_have_one_name() -> None:
    """Each public class has a unique name."""
    names = Counter(
        node.name
        for tree in sources().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, times in names.items() if times > 1] == []


def test_no_name_is_a_participle_alone() -> None:
    """No function, parameter or module is named with a bare participle: a verb or noun says what it is."""
    assert [
        f"{path}:{line}: {name}"
        for path, tree in sources().items()
        for name, line in [(Path(path).stem, 1), *names_in(tree)]
        if name.strip("_") in PARTICIPLES and name not in ALLOWED
    ] == []


def names_in(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names of functions and parameters with their lines, except for handlers: wire names."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not any(is_handler(decorator) for decorator in node.decorator_list):
                yield node.name, node.lineno
            for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                yield parameter.arg, parameter.lineno


def is_handler(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called) in {"workflow.signal", "workflow.query", "workflow.update"}
