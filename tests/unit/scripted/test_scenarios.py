"""The failures that a scenario can cause."""

import json
from pathlib import Path

import pytest
from fakes.scripted_agent import ScriptedAgent

from septet.agents.scripted.scenario import Script, load_scenario

CLASSIFY = '# classify_issue\n\n<issue>\n{"title": "Add a switch"}\n</issue>\n'
IMPLEMENT = "# implement_plan\n\n- Plan: `specs/p.md`\n"
SCHEMA = json.dumps(
    {"type": "object", "properties": {"success": {"type": "boolean"}}, "required": ["success", "summary"]}
)


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in Path(__file__).parents[3].glob("septet/agents/scripted/scenarios/*.json"))
)
def test_every_built_in_scenario_is_valid(name: str) -> None:
    """Each built-in scenario is found by its name and has valid scripts."""
    assert isinstance(load_scenario(name).script("implement_plan", 1), Script)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"stps": {}}, "stps is unknown"),
        ({"steps": {"implement": {}}}, "implement is not a step"),
        ({"steps": {"implement_plan": [{}, {"hang": 1}]}}, "hang is of the wrong type"),
        ({"steps": {"*": {"malformed": "odd"}}}, "malformed is one of truncated, prose"),
        ({"steps": {"*": {"finalizer": {"malfomed": "prose"}}}}, "finalizer: malfomed is unknown"),
        ([], "is not a JSON object"),
    ],
)
def test_a_scenario_that_is_wrong_is_refused(agent: ScriptedAgent, content: object, words: str) -> None:
    """The error for a wrong scenario names the place and the key, and no session starts."""
    ran = agent.run(CLASSIFY, scenario=content)
    assert (ran.code, ran.events) == (1, [])
    assert words in ran.stderr


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("malformed", [(False, [True])]),
        ("malformed_twice", [(False, [False, True])]),
        ("malformed_always", [(False, [False, False]), (True, [])]),
    ],
)
def test_the_finalizer_repairs_as_often_as_the_scenario_says(
    agent: ScriptedAgent, scenario: str, expected: list[tuple[bool, list[bool]]]
) -> None:
    """The answers of the step and of its finalizers are broken as often as the scenario says."""
    (agent.folder / "specs").mkdir()
    (agent.folder / "specs" / "p.md").write_text("# Bug: Mend the sum\n")
    for whole, finalizers in expected:
        ran = agent.run(IMPLEMENT, "--json-schema", SCHEMA, scenario=scenario)
        assert ("structured_output" in ran.result) is whole
        for repaired in finalizers:
            argv = ("--resume", ran.session, "--tools", "", "--json-schema", SCHEMA)
            final = agent.run("JSON only.", *argv, scenario=scenario)
            assert ("structured_output" in final.result) is repaired
