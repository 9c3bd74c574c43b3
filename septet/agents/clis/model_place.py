"""Where a CLI asks its model, and the keys that it has for there: what the engine changes for a guest."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ModelPlace:
    """A model API as a CLI is told of it."""

    name: str
    """How the CLI's adapter knows it: a variable, or a provider of its settings."""
    address: str
    keys: Mapping[str, str] = field(repr=False)
    """By the variable, or the place in the settings, that has it."""
    headers: tuple[str, ...] = ()
    """In which the CLI sends keys, beside those in which all do."""
