"""Check whether a stream names the requested model, which may have several names."""

import re
from typing import Final

_REGION_AND_MAKER: Final = re.compile(r"^(?:[a-z]{2,6}\.)?[a-z]+\.(?=[a-z])")
"""The prefix of a model's name on Bedrock: `eu.anthropic.`."""
_EDITION: Final = re.compile(r"(?:-(?:latest|preview|exp|default|v\d+|\d{3,8}|\d{4}-\d\d-\d\d|\d\d-\d{2,4}))+$")
"""The suffix of a model's name: a date, a revision, or its release state."""
_SIZES: Final = frozenset({"fable", "opus", "sonnet", "haiku", "pro", "flash", "lite"})
"""The words with which CLIs name the newest model of a kind."""


def names_another_model(asked_model: str, told_model: str) -> bool:
    """Return whether a stream certainly names another model than the requested model.

    `auto` leaves the choice to the CLI. A name without a number is a word of the CLI, which the user may define:
    only another such word, as `haiku` for `opus`, contradicts the name.
    """
    wanted, named = _plain(asked_model), _plain(told_model)
    if wanted.startswith("auto"):
        return False
    if any(character.isdigit() for character in wanted):
        return _EDITION.sub("", wanted) != _EDITION.sub("", named)
    words = _SIZES.intersection(wanted.split("-"))
    others = _SIZES.intersection(named.split("-")) - words
    return bool(words and others and not words.issubset(named.split("-")))


def _plain(name: str) -> str:
    """Return a name without provider, context length and revision, with `-` between its words."""
    last = name.lower().rpartition("/")[2].partition("[")[0].partition("@")[0].partition(":")[0]
    return re.sub(r"[._]", "-", _REGION_AND_MAKER.sub("", last))
