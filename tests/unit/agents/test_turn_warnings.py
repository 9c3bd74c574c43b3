"""The warnings in the result of a turn."""

from dataclasses import replace
from pathlib import Path

import pytest
from fakes.run_records import RECORD

from activities.turns.results import warnings_of
from septet.agents.clis.models import names_another_model
from septet.agents.outcomes.outcome import Outcome
from septet.agents.runs.folders import Run
from septet.agents.turns.turn_runs import TurnResult


@pytest.mark.parametrize(
    ("agent", "held", "warned"),
    [
        ("codex", ("held_usd",), True),
        ("codex", ("held_usd", "held_tokens"), False),
        ("claude", ("held_usd",), False),
        ("copilot", ("held_tokens",), True),
    ],
)
def test_a_turn_warns_of_a_budget_that_does_not_limit_its_agent(
    agent: str, held: tuple[str, ...], *, warned: bool
) -> None:
    """A turn warns if its agent does not report the unit of the budget."""
    turn = TurnResult(Outcome(ended="ok"), run_of(agent, held), None, 1)
    assert [f"{agent} reports n" in warning for warning in warnings_of(turn)] == [True] * warned


@pytest.mark.parametrize(
    ("asked", "told", "warned"),
    [("opus", "claude-haiku-5-5", True), ("opus", None, False), ("", "x-1", False)],
)
def test_a_turn_warns_of_a_model_that_was_not_asked_for(asked: str, told: str | None, *, warned: bool) -> None:
    """A turn warns if the stream names another model than the requested one."""
    turn = TurnResult(Outcome(ended="ok", model=told), run_of("claude", model=asked), None, 1)
    words = (f"the model {asked} was asked for, and claude names {told}",)
    assert warnings_of(turn) == (words if warned else ())


def run_of(agent: str, held: tuple[str, ...] = (), model: str = "") -> Run:
    return Run(Path("/"), replace(RECORD, agent=agent, limits=dict.fromkeys(held, 5.0), model=model))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("sonnet", "claude-sonnet-4-5-20250929"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-opus-5-5[1m]", "claude-opus-5-5"),
        ("openrouter/anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4.5"),
        ("claude-sonnet-4-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("gemini-2.5-pro", "gemini-2.5-pro-preview-05-06"),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet-20250219"),
        ("opus", "glm-4.6"),
        ("default", "claude-opus-5-5"),
        ("opusplan", "claude-sonnet-5-5"),
        ("auto-gemini-2.5", "gemini-3.1-pro-preview"),
    ],
)
def test_other_names_of_a_model_are_no_other_model(asked: str, told: str) -> None:
    """Aliases, dates, prefixes of providers and a user's own names cause no warning."""
    assert not names_another_model(asked, told)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("opus", "claude-haiku-5-5"),
        ("pro", "gemini-3.8-flash"),
        ("claude-opus-4-5", "claude-opus-4-6"),
        ("gpt-5", "gpt-5-mini"),
        ("openai/gpt-5.4", "anthropic/claude-sonnet-4-5"),
    ],
)
def test_another_model_is_another_model(asked: str, told: str) -> None:
    """Another family, size or number is another model."""
    assert names_another_model(asked, told)
