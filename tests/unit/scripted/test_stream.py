"""The agent's stream has claude's events with the same fields and the same totals."""

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.scripted_agent import ScriptedAgent

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings" / "claude"
SCHEMA = json.dumps(
    {"type": "object", "properties": {"issue_class": {"type": "string"}}, "required": ["issue_class"]}
)
EDITS = {"steps": {"*": {"edits": {"hello.txt": "hello world\n"}}}}
FREE = {"input", "tool_use_result", "structured_output", "modelUsage", "model_usage_since_last_result"}
"""The fields whose contents belong to a tool or a model."""
CASES = [
    ("edit_bypass", (), EDITS),
    ("structured_ok", ("--json-schema", SCHEMA), {}),
    ("structured_never", ("--json-schema", SCHEMA), {"steps": {"*": {"malformed": "prose"}}}),
    ("overloaded_max_retries2", (), {"steps": {"*": {"api_error": 529}}}),
    ("max_turns", ("--max-turns", "2"), {"steps": {"*": {"extra_turns": 9}}}),
    ("resume_5_unknown_id", ("--resume", "a95a24b6-a715-4e34-bb7b-ed0161dd0bac"), {}),
]


def recorded(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDINGS / f"{name}.stdout").read_text(encoding="utf-8").splitlines()]


def fields(value: Any, path: str = "") -> set[str]:
    """Return each field of an event with the type of its value; all numbers count as one type."""
    if isinstance(value, dict) and path.rpartition(".")[2] not in FREE:
        return set().union(*(fields(inner, f"{path}.{key}") for key, inner in value.items()))
    if isinstance(value, list):
        return {path}.union(*(fields(inner, path) for inner in value if isinstance(inner, dict)))
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return {f"{path}: {'number' if number else type(value).__name__}"}


CLAUDES: dict[tuple[str, str | None], set[str]] = {}
for case in CASES:
    for event in recorded(case[0]):
        CLAUDES.setdefault((event["type"], event.get("subtype")), set()).update(fields(event))


@pytest.mark.parametrize(("recording", "argv", "scenario"), CASES)
def test_a_run_prints_claudes_events_and_ends_as_claudes_does(
    agent: ScriptedAgent, recording: str, argv: tuple[str, ...], scenario: object
) -> None:
    """Each event has only fields and types of claude's; exit code, kind of result and filled fields equal claude's."""
    ran = agent.run("# classify_issue\n\nsome text", *argv, scenario=scenario)
    for event in ran.events:
        assert fields(event) - CLAUDES[event["type"], event.get("subtype")] == set()
    last = recorded(recording)[-1]
    told = ("subtype", "is_error", "terminal_reason", "api_error_status")
    assert [ran.result.get(key) for key in told] == [last.get(key) for key in told]
    places = ("result", "errors", "structured_output")
    assert [key in ran.result for key in places] == [key in last for key in places]
    assert ran.code == int((RECORDINGS / f"{recording}.exit").read_text())
    assert next(iter(ran.result)) != "type", "a reader of line beginnings fails as with claude"


def test_usage_is_the_sum_of_the_turns_and_cost_grows_with_the_session(agent: ScriptedAgent) -> None:
    """The usage counts the run, and the cost counts the whole session."""
    scenario = {"cost_usd": 0.25, "tokens": {"input_tokens": 5}}
    first = agent.run("# classify_issue\n\nx", scenario=scenario)
    second = agent.run("go on", "--resume", first.session, scenario=scenario)
    told = [(ran.result["usage"]["input_tokens"], ran.result["total_cost_usd"]) for ran in (first, second)]
    assert told == [(10, 0.5), (10, 1.0)]
