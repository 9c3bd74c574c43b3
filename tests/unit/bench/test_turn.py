"""The figures of turns of the real CLIs."""

import io
import json

from rich.console import Console

from bench.figure import Figure
from bench.table import table
from bench.turn import cost_of, figure_of


def test_a_turn_stands_beside_the_engines_share() -> None:
    """The figure is the median of the real turns in milliseconds, and its baseline that of a printing program."""
    figure = figure_of("codex", [0.3, 0.2, 0.9], [0.02, 0.01, 0.015], "bwrap")
    assert (figure.value, figure.baseline, figure.ratio) == (300.0, 15.0, 20.0)
    assert figure.passed is None
    assert figure.note == "p50 of 3, 0.171.0, in bwrap, a model on loopback"


def test_the_cost_of_the_sandbox_is_that_of_the_usual_pair() -> None:
    """Each turn is compared with the next one without a sandbox, and more than three percent misses the target."""
    figure = cost_of("codex", [1.02, 1.5, 0.99], [1.0, 1.0, 1.0])
    assert (round(figure.value or 0, 6), figure.passed) == (2.0, True)
    assert "+20 ms each" in figure.note
    assert "the fastest: -1.0 %" in figure.note
    assert cost_of("codex", [1.04], [1.0]).passed is False


def test_a_cli_that_is_not_installed_is_named_in_the_table() -> None:
    """The line names the command that installs the CLI; it has no value, ratio or verdict."""
    figure = figure_of("codex", [], [0.02], "none")
    out = io.StringIO()
    Console(file=out, width=160).print(table({"turn": [figure]}, "A title"))
    assert "turn: codex" in out.getvalue()
    assert "not installed: scripts/agents install codex" in out.getvalue()
    assert "20 ms: a program that prints" in out.getvalue()
    told = json.loads(json.dumps(figure.as_json(), allow_nan=False))
    assert (told["value"], told["ratio"], told["passed"]) == (None, None, None)


def test_what_was_not_measured_does_not_miss_its_target() -> None:
    """A figure without a value has no verdict, whatever its target."""
    assert Figure("x", None, "ms", 60.0).passed is None
