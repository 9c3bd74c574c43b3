"""The length of a session: from the CLI's last request, from an average, or from an estimate."""

from typing import Any

import pytest
from fakes.agent_streams import outcome_of, part


def message(number: int, read_tokens: int, *, inside: str | None = None) -> dict[str, Any]:
    usage = {"input_tokens": 3, "cache_read_input_tokens": read_tokens, "cache_creation_input_tokens": 20}
    said = {"id": f"m{number}", "model": "m", "content": [], "usage": {**usage, "output_tokens": 1}}
    return {"type": "assistant", "session_id": "s", "parent_tool_use_id": inside, "message": said}


def step(read_tokens: int) -> dict[str, Any]:
    tokens = {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": read_tokens, "write": 1}}
    return part("step_finish", reason="stop", tokens=tokens)


def spoken(number: int) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": f"i{number}", "type": "agent_message", "text": "ok"}}


@pytest.mark.parametrize(
    ("cli", "events", "tokens"),
    [
        ("claude", [message(1, 500), message(2, 900), message(3, 7, inside="t1")], 924),
        ("opencode", [step(100), step(300)], 318),
        ("codex", [spoken(1), spoken(2), {"type": "turn.completed", "usage": {"input_tokens": 300, "output_tokens": 9}}], 159),
        ("copilot", [{"type": "assistant.message", "data": {"content": "ok"}}], 0),
    ],
    ids=["claude", "opencode", "codex", "copilot"],
)  # fmt: skip
def test_a_session_is_as_long_as_its_last_request(cli: str, events: list[dict[str, Any]], tokens: int) -> None:
    """A sub-agent's request does not count; from sums alone, the average of the requests counts."""
    assert outcome_of(cli, *events).context_tokens == tokens
