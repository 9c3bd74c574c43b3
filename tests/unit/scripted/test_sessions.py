"""Sessions on the disk, which are resumed, refused and counted as claude's are."""

import json
import uuid

import pytest
from fakes.scripted_agent import ScriptedAgent

CLASSIFY = '# classify_issue\n\n<issue>\n{"title": "Add a switch"}\n</issue>\n'
SCHEMA = json.dumps(
    {"type": "object", "properties": {"issue_class": {"type": "string"}}, "required": ["issue_class"]}
)


def test_an_id_that_was_given_is_the_sessions(agent: ScriptedAgent) -> None:
    """Every event names the given session id, and a second session with the id is refused."""
    own = str(uuid.uuid4())
    ran = agent.run(CLASSIFY, "--session-id", own)
    assert {event["session_id"] for event in ran.events} == {own}
    again = agent.run(CLASSIFY, "--session-id", own)
    assert (again.code, again.events) == (1, [])
    assert again.stderr == f"Error: Session ID {own} is already in use.\n"


@pytest.mark.parametrize("unknown", ["a95a24b6-a715-4e34-bb7b-ed0161dd0bac", "../../etc/passwd"])
def test_an_unknown_session_fails_on_both_streams(agent: ScriptedAgent, unknown: str) -> None:
    """An unknown session prints a result with `errors` and the same words on stderr, and leaves no session."""
    ran = agent.run("go on", "--resume", unknown)
    reason = f"No conversation found with session ID: {unknown}"
    assert (ran.code, ran.stderr, ran.result["errors"]) == (1, f"{reason}\n", [reason])
    assert list((agent.home / "memory" / "sessions").iterdir()) == []


def test_the_finalizer_gets_the_json_without_touching_a_file(agent: ScriptedAgent) -> None:
    """A turn without tools answers from the session's memory and touches no file."""
    prompt = '# build_plan_bug\n\n<issue>\n{"title": "Mend it"}\n</issue>\n'
    schema = {
        "type": "object",
        "properties": {"plan_path": {}, "summary": {}},
        "required": ["plan_path", "summary"],
    }
    first = agent.run(prompt, scenario={"steps": {"build_plan": {"malformed": "prose"}}})
    plan = agent.folder / "specs" / "wo-7-planner-mend-it.md"
    plan.write_text("touched")
    argv = ("--resume", first.session, "--tools", "", "--json-schema", json.dumps(schema), "--max-turns", "1")
    ran = agent.run("JSON only.", *argv)
    assert ran.tools() == ["StructuredOutput"]
    assert ran.events[0]["tools"] == ["StructuredOutput"]
    assert ran.result["structured_output"]["plan_path"] == "specs/wo-7-planner-mend-it.md"
    assert plan.read_text() == "touched"
