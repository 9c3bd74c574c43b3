"""Several turns from stdin, as claude reads them with `--input-format stream-json`."""

import json
import uuid
from typing import Any

from fakes.scripted_agent import ScriptedAgent

MANY = ("--input-format", "stream-json", "--replay-user-messages")
CLASSIFY = '# classify_issue\n\n<issue>\n{"title": "Add a switch"}\n</issue>\n'


def message(content: object, **more: object) -> str:
    """Return a message as a line of stdin."""
    return json.dumps({"type": "user", "message": {"role": "user", "content": content}, **more}) + "\n"


def results(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events that are results."""
    return [event for event in events if event["type"] == "result"]


def test_each_message_is_a_turn_of_one_session(agent: ScriptedAgent) -> None:
    """Each message is a turn with its own beginning, echo and result; only the total cost adds up."""
    marks = [str(uuid.uuid4()), str(uuid.uuid4())]
    text = message(CLASSIFY, uuid=marks[0]) + "\n" + message([{"type": "text", "text": "Again."}], uuid=marks[1])
    ran = agent.run(text, *MANY, scenario={"cost_usd": 0.25})
    assert ran.code == 0
    assert len({event["session_id"] for event in ran.events}) == 1
    kinds = [(event["type"], event.get("subtype")) for event in ran.events]
    assert kinds.count(("system", "init")) == 2
    assert [event["uuid"] for event in ran.events if event.get("isReplay")] == marks
    first, second = results(ran.events)
    assert json.loads(first["result"]) == json.loads(second["result"]) == {"issue_class": "/feature"}
    assert first["usage"]["output_tokens"] > 0
    own = [
        sum(one["costUSD"] for one in result["model_usage_since_last_result"].values())
        for result in (first, second)
    ]
    assert own == [0.25 * first["num_turns"], 0.25 * second["num_turns"]]
    assert second["total_cost_usd"] == sum(own)
