"""Each option and each setting has an effect: it changes an input, and the product reads it."""

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from fakes.command_lines import given_to, leaves, options_of

from clients.cli.pipelines.commands import pipeline_input
from clients.cli.start.run import order_input
from septet.contracts.order import WorkOrderInput
from septet.contracts.wire import Wire
from septet.forges.kinds import KINDS
from septet.pipelines.inputs import PipelineInput
from septet.settings import Settings

ROOT = Path(__file__).parents[3]
TESTS = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
ROOMS = ("septet", "activities", "workflows", "workers")
SETTINGS = [name for name in Settings.model_fields if name != "environ"]
ISSUES = [{"id": "a", "title": "A", "body": "First."}]
STARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("--repo", "/app.git", "--title", "T"),
    "create": ("--repo", "/app.git", "--title", "T"),
    "pipeline": ("--repo", "/app.git", "--issues", "7"),
}
SAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "--repo": ("/other.git",), "--issue": ("42",), "--issue-file": ("{issue}",), "--title": ("Other",),
    "--body": ("Why.",), "--stage": ("triaged",), "--agent": ("codex",), "--fallback-agent": ("codex",),
    "--model": ("m",), "--base": ("dev",),
    "--push-to": ("me/r",),
    "--project": ("p",), "--priority": ("5",), "--impact": ("1",), "--effort": ("5",), "--after": ("wo-1",),
    "--after-until": ("closed",), "--label": ("ready",), "--approve-plan": (), "--plan-only": (), "--follow-pr": (),
    "--draft": (), "--sessions": ("shared",),
    "--budget": ("5usd",),
    "--step": ("build_plan.model=m",), "--issues": ("8",), "--file": ("{issues}",), "--planner": ("codex",),
    "--executor": ("codex",), "--executors": ("2",), "--one-branch": (), "--fresh": (), "--plans-ahead": ("1",),
    "--plan-seconds": ("9",), "--execution-seconds": ("9",), "--context-tokens": ("90000",),
}  # fmt: skip
"""The value of each option of a start."""
INSTEAD_OF: Final = {"--issue": "--title", "--issue-file": "--title", "--file": "--issues", "--label": "--issues"}
"""Options that exclude each other; `--label` of a pipeline only."""
NOT_OF_THE_INPUT: Final = {"--id", "--wait", "--address", "--json", "--again", "--dry-run"}
FORGE_SETTINGS: Final = {f"{kind.name}_{what}" for kind in KINDS for what in ("hosts", "api_url", "token")}
"""The settings that `septet.forges.choose` reads by a forge's name."""
OPTIONS: Final = [(" ".join(path), option) for path in leaves() for option in options_of(path)]
OF_INPUTS = [
    (command, option) for command, option in OPTIONS if command in STARTS and option not in NOT_OF_THE_INPUT
]


def parsed(command: str, *words: str) -> Wire:
    """Return the input of a command line."""
    given = given_to((command, *words))
    return pipeline_input(given.pipeline) if command == "pipeline" else order_input(given)


@pytest.mark.parametrize(("command", "option"), OF_INPUTS)
def test_an_option_of_a_start_changes_its_input(command: str, option: str, tmp_path: Path) -> None:
    """Each option changes the input, and an option without a sample fails here."""
    (tmp_path / "issue.md").write_text("# From a file\n", encoding="utf-8")
    (tmp_path / "issues.json").write_text(json.dumps(ISSUES), encoding="utf-8")
    files = {"issue": str(tmp_path / "issue.md"), "issues": str(tmp_path / "issues.json")}
    usual = STARTS[command]
    replaced = INSTEAD_OF.get(option) if command == "pipeline" or option != "--label" else None
    pairs = [pair for pair in zip(usual[::2], usual[1::2], strict=True) if pair[0] not in {replaced, option}]
    words = [word for pair in pairs for word in pair]
    sample = [word.format(**files) for word in SAMPLES[option]]
    assert parsed(command, *words, option, *sample) != parsed(command, *usual)


def lines_of_tests() -> set[frozenset[str]]:
    """Return the strings of each call, tuple, list and dictionary in the tests."""
    lines = set()
    for path in TESTS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts: list[ast.AST] = []
            if isinstance(node, ast.Call):
                parts = [*node.args, *(keyword.value for keyword in node.keywords)]
                lines.add(frozenset(keyword.arg for keyword in node.keywords if keyword.arg))
            elif isinstance(node, ast.Tuple | ast.List):
                parts = [*node.elts]
            elif isinstance(node, ast.Dict):
                parts = [key for key in node.keys if key is not None]
            constants = (each for part in parts for each in ast.walk(part) if isinstance(each, ast.Constant))
            lines.add(frozenset(each.value for each in constants if isinstance(each.value, str)))
    return lines


def test_tests_try_each_command_with_each_option_and_each_setting() -> None:
    """A test uses each command with each option, and a test sets each setting."""
    lines = lines_of_tests()
    others = [each for each in OPTIONS if each not in OF_INPUTS and each[1] != "--address"]
    words = {f"septet {command} {option}": {*command.split(), option} for command, option in others}
    assert [name for name, wanted in words.items() if not any(wanted <= line for line in lines)] == []
    assert [name for name in SETTINGS if not any({name, f"SEPTET_{name.upper()}"} & line for line in lines)] == []


def reads(*rooms: str) -> set[str]:
    """Return the names of all attributes that these packages read."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for room in rooms for path in (ROOT / room).rglob("*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}


def test_something_reads_each_field_of_an_input_and_each_setting() -> None:
    """Code beyond the clients reads each field of an input, and each setting."""
    beyond = reads(*ROOMS)
    assert {*WorkOrderInput.model_fields, *PipelineInput.model_fields} - beyond == set()
    assert {*SETTINGS} - beyond - reads("clients") - FORGE_SETTINGS == set()
