"""What the words of model APIs and CLIs mean, as people have reported them."""

import pytest

from septet.agents.clis.api_errors import classify


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("prompt is too long: 215197 tokens > 200000 maximum", "context_length"),
        ("the request exceeds the available context size, try increasing it", "context_length"),
        ("ValidationException: Input is too long for requested model.", "context_length"),
        ("Your request exceeded model token limit: 262144 (requested: 300000)", "context_length"),
        ("invalid params, context window exceeds limit", "context_length"),
        ("5-hour limit reached ∙ resets 3pm", "rate_limit"),
        ("You've hit your weekly limit · resets Mon 9am", "rate_limit"),
        ("OAuth token has expired. Please obtain a new token.", "authentication"),
        ("Incorrect API key provided: sk-xxxx.", "authentication"),
        ("This organization has been disabled.", "permission"),
        ("There's an issue with the selected model (x-1). It may not exist.", "unknown_model"),
        ("Overloaded", "overloaded"),
        ("connect ETIMEDOUT 10.0.0.1:443", "network"),
        ("The teapot is short and stout.", "unknown"),
    ],
)
def test_words_tell_where_no_status_does(words: str, kind: str) -> None:
    """A message without a status is understood by what it says."""
    assert classify(None, words).kind == kind


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (429, "too many tokens per minute for this model", "rate_limit"),
        (401, "the account is out of quota", "authentication"),
        (400, "prompt token count of 9 exceeds the limit of 8", "context_length"),
    ],
)
def test_a_status_says_more_than_most_words(status: int, words: str, kind: str) -> None:
    """Only words of a long context, and of an account that is empty, go before it."""
    assert classify(status, words).kind == kind
