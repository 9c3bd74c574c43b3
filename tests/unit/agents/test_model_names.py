"""The requested model compared with the model that a stream names."""

import pytest

from septet.agents.clis.models import names_another_model


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("sonnet", "claude-sonnet-4-5-20250929"),
        ("opus[1m]", "claude-opus-5-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-opus-5-5[1m]", "claude-opus-5-5"),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("openrouter/anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4.5"),
        ("claude-sonnet-4-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("gemini-2.5-pro", "gemini-2.5-pro-preview-05-06"),
        ("flash", "gemini-3.8-flash"),
        ("flash-lite", "gemini-3.5-flash-lite"),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet-20250219"),
        ("opus", "glm-4.6"),
        ("default", "claude-opus-5-5"),
        ("opusplan", "claude-sonnet-5-5"),
        ("auto-gemini-2.5", "gemini-3.1-pro-preview"),
        ("stub/stub-model", "stub-model"),
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
        ("gpt-5.4", "gpt-5-mini"),
        ("gpt-5", "gpt-5-mini"),
        ("openai/gpt-5.4", "anthropic/claude-sonnet-4-5"),
    ],
)
def test_another_model_is_another_model(asked: str, told: str) -> None:
    """Another family, size or number is another model."""
    assert names_another_model(asked, told)
