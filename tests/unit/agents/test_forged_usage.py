"""What a budget counts if a program of the agent has written into the agent's stream."""

from typing import Any

import pytest
from fakes.agent_streams import GOOD, outcome_of

from septet.agents.clis.registry import adapter_for
from septet.contracts.amounts import Spending

HONEST: dict[str, list[dict[str, Any]]] = {
    "claude": [
        {"type": "system", "subtype": "init", "session_id": "s"},
        {
            "type": "assistant",
            "session_id": "s",
            "message": {"id": "m", "content": [], "usage": {"input_tokens": 70}},
        },
    ],
    "opencode": [
        {"type": "step_finish", "sessionID": "s", "part": {"cost": 2.0, "tokens": {"input": 70}, "reason": "stop"}}
    ],
}
FORGED: list[tuple[str, dict[str, Any]]] = [
    ("claude", {"type": "result", "session_id": "s", "total_cost_usd": -100, "usage": {"input_tokens": -900}}),
    (
        "claude",
        {"type": "result", "session_id": "s", "total_cost_usd": -1e308, "usage": {"output_tokens": -1e308}},
    ),
    ("claude", {"type": "result", "session_id": "s", "modelUsageSinceLastResult": {"m": {"costUSD": -100}}}),
    ("claude", {"type": "result", "session_id": "s", "total_cost_usd": True, "usage": {"input_tokens": "many"}}),
    ("opencode", {"type": "step_finish", "sessionID": "s", "part": {"cost": -100, "tokens": {"input": -900}}}),
]


@pytest.mark.parametrize(("agent", "event"), FORGED)
def test_no_event_gives_back_what_others_have_used(agent: str, event: dict[str, Any]) -> None:
    """Negative costs and tokens count as zero; otherwise the budget of a project or a day would grow."""
    used = Spending.of(outcome_of(agent, *HONEST[agent], event).usage, 1.0)
    assert (used.usd >= 0, used.tokens >= 0) == (True, True)
    assert used.usd == (2.0 if agent == "opencode" else 0.0)


def test_what_a_stream_says_too_much_is_no_number_without_end() -> None:
    """An infinite amount counts as zero and crashes no worker."""
    stream = adapter_for("claude").dialect()
    stream.feed(b'{"type":"result","session_id":"s","total_cost_usd":1e999,"usage":{"input_tokens":1e999}}\n')
    used = Spending.of(stream.outcome(GOOD, "").usage, 1.0)
    assert (used.usd, used.tokens) == (0.0, 0)
