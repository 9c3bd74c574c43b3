import pytest
from fakes.repositories import Origin, git
from fakes.septet_command import Septet

pytestmark = pytest.mark.faces

SETTINGS = """\
setup = ["npm ci"]
checks = ["python -m pytest -q"]

[limits]
wall_seconds = 900

[steps.implement_plan]
model = "big"
"""


def test_a_dry_run_tells_what_would_run_and_starts_nothing(served: Septet, origin: Origin) -> None:
    """The dry run lists agent, model, limits and prompt of each step, from the repository's base, and writes nothing."""
    origin.push(
        {".septet/septet.toml": SETTINGS, ".septet/commands/create_commit.md": "Commit it: ${PLAN_FILE}\n"}
    )
    refs = git(origin.bare, "for-each-ref")
    words = (
        "run",
        origin.bare,
        "--title",
        "T",
        "--id",
        "wo-dry",
        "--approve-plan",
        "--step",
        "build_plan.turns=7",
        *("--model", "small", "--step", "create_commit.model=other", "--budget", "5usd"),
    )
    answer = served(*words, "--dry-run", "--json").json
    assert (answer["ok"], answer["base_branch"], answer["approve_plan"]) == (True, "main", True)
    assert answer["base_sha"] == git(origin.bare, "rev-parse", "main")
    assert answer["budgets"] == {"work order": "5usd"}
    assert (answer["setup"], answer["checks"]) == (["npm ci"], ["python -m pytest -q"])
    steps = {step["step"]: step for step in answer["steps"]}
    assert len(steps) == 7
    assert {step["agent"] for step in answer["steps"]} == {"scripted"}
    assert steps["build_plan"]["turns"] == 7
    models = {name: step["model"] for name, step in steps.items() if step["model"] != "small"}
    assert models == {"implement_plan": "big", "create_commit": "other"}
    assert max(step["wall_seconds"] for step in answer["steps"]) == 900
    assert (steps["create_commit"]["commands"], steps["create_commit"]["built_in"]) == (
        [".septet/commands/create_commit.md"], False,
    )  # fmt: skip
    assert steps["build_plan"]["built_in"]
    assert len(steps["build_plan"]["commands"]) == 3

    shown = served(*words, "--dry-run").out
    assert "Nothing was started." in shown
    assert "budget        5usd (work order)" in shown
    assert served("show", "wo-dry", "--json").code == 3
    assert git(origin.bare, "for-each-ref") == refs
    assert [*served.state.rglob("*wo-dry*")] == []


def test_a_dry_run_finds_the_mistakes_of_a_start(served: Septet, origin: Origin) -> None:
    """A dry run refuses a wrong input with the same error as a start; with --plan-only its steps end with the plan."""
    words = ("run", origin.bare, "--title", "T", "--json")
    wrong = (*words, "--base", "mian")
    assert served(*wrong, "--dry-run").error == served(*wrong).error
    planned = served("run", origin.bare, "--title", "T", "--json", "--plan-only", "--dry-run")
    steps = planned.json["steps"]
    assert [step["step"] for step in steps] == ["classify_issue", "build_plan", "find_plan_file"]
