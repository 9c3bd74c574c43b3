"""The tools, the model and the limits of an agent."""

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from septet.contracts.amounts import BudgetText
from septet.contracts.wire import InnerWire

Tools = Literal["all", "read", "none"]

Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,199}$")]
"""The name of an agent or a model, which no command line mistakes for an option."""
Seconds = Annotated[float, Field(gt=0, le=86_400)]
MOST_SETUP_SECONDS: Final = 3600.0
"""The most seconds that all set-up commands of a repository may take together."""
SetupSeconds = Annotated[float, Field(gt=0, le=MOST_SETUP_SECONDS)]
Turns = Annotated[int, Field(ge=1, le=10_000)]


class Timeouts(InnerWire):
    """Limits of one agent run."""

    wall_seconds: Seconds = 3600.0
    """The most seconds from start to end."""
    idle_seconds: Seconds = 600.0
    """The most seconds without a byte on the agent's stream."""
    turns: Turns = 500
    """The most assistant turns on the agent's stream."""
    heartbeat_seconds: Annotated[float, Field(ge=1, le=3600)] = 120.0
    """The seconds without a heartbeat from the worker until another attempt begins. Heartbeats cost money and come
    30 s earlier, so the server may be away for 30 s. If the host has another worker, a dead worker is noticed
    sooner."""


class SomeLimits(InnerWire):
    """The limits of an agent run that a setting names; an absent limit is not set."""

    wall_seconds: Seconds | None = None
    idle_seconds: Seconds | None = None
    turns: Turns | None = None


class StepSettings(SomeLimits):
    """The tools, the model and the limits of one step; absent values are not set."""

    tools: Tools | None = None
    model: Word | None = None
    budget: BudgetText | None = None
    """The limit for all runs of the step together, such as `3usd`."""

    def over(self, limits: Timeouts) -> Timeouts:
        """Return `limits`, with the limits of this object in place of those that this object sets."""
        own = self.model_dump(include=set(Timeouts.model_fields), exclude_none=True)
        return limits.model_copy(update=own)
