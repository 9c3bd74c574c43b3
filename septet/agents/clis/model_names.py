"""Check whether a stream names the requested model, which may have several names."""

import re
from typing import Final

_REGION_AND_MAKER: Final = re.compile(r"^(?:[a-z]{2,6}\.)?[a-z]+\.(?=[a-z])")
"""In front of a model's name on Bedrock: `eu.anthropic.`."""
_EDITION: Final = re.compile(r"(?:-(?:latest|preview|exp|default|v\d+|\d{3,8}|\d{4}-\d\d-\d\d|\d\d-\d{2,4}))+$")
"""Behind it: a date, a revision, or how new it is."""
_SIZES: Final = frozenset({"fable", "opus", "sonnet", "haiku", "pro", "flash", "lite"})
"""The words of which CLIs make names for whichever model of a kind is the newest."""


def names_another_model(asked_model: str, told_model: str) -> bool:
    """Return whether a stream certainly names another model than the requested model.

    `auto` leaves it to the CLI. A word without a number is a name of the CLI's own, whose meaning is its user's to
    set: it is held only against the other words of its kind.
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
    """Return a name without its provider, its context length and its revision, with one sign between its words."""
    last = name.lower().rpartition("/")[2].partition("[")[0].partition("@")[0].partition(":")[0]
    return re.sub(r"[._]", "-", _REGION_AND_MAKER.sub("", last))
