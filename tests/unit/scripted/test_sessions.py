"""Sessions on the disk, which are resumed, refused and counted as claude's are."""

import uuid

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
