"""What an agent may use and take: its tools, its model and its limits."""

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from septet.contracts.amounts import BudgetText
from septet.contracts.wire import InnerWire

Tools = Literal["all", "read", "none"]

Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,199}$")]
"""The name of an agent or a model: never something that a command line would take for an option."""
Seconds = Annotated[float, Field(gt=0, le=86_400)]
MOST_SETUP_SECONDS: Final = 3600.0
"""The longest that all set-up commands of a repository may take together."""
SetupSeconds = Annotated[float, Field(gt=0, le=MOST_SETUP_SECONDS)]
Turns = Annotated[int, Field(ge=1, le=10_000)]


class Timeouts(InnerWire):
    """Limits of one agent run."""

    wall_seconds: Seconds = 3600.0
    """From start to end."""
    idle_seconds: Seconds = 600.0
    """Without a byte on the stream."""
    turns: Turns = 500
    """Assistant turns on the stream."""
    heartbeat_seconds: Annotated[float, Field(ge=1, le=3600)] = 120.0
    """Without a word from the worker, before another attempt begins. A worker's words are paid for, and come 30 s
    earlier: so long may the server be away. A dead worker is not waited for where its host has another."""


class SomeLimits(InnerWire):
    """Some of the limits of an agent run, those that somebody cares about."""

    wall_seconds: Seconds | None = None
    idle_seconds: Seconds | None = None
    turns: Turns | None = None


class StepSettings(SomeLimits):
    """Tools, model and limits of one step, as far as somebody cares."""

    tools: Tools | None = None
    model: Word | None = None
    budget: BudgetText | None = None
    """What all runs of the step may use together, such as `3usd`."""

    def over(self, limits: Timeouts) -> Timeouts:
        """Return the limits with these put over them."""
        own = self.model_dump(include=set(Timeouts.model_fields), exclude_none=True)
        return limits.model_copy(update=own)
