"""Sessions on the disk, which are resumed, refused and counted as claude's are."""

import uuid

import pytest
from fakes.scripted_agent import ScriptedAgent

CLASSIFY = '# classify_issue\n\n<issue>\n{"title": "Add a switch"}\n</issue>\n'


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
