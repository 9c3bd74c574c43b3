"""What a work order would run, as a dry run tells it."""

from collections.abc import Mapping

from pydantic import Field

from septet.contracts.costs import Estimate
from septet.contracts.limits import Tools
from septet.contracts.replies import Reply
from septet.contracts.wire import Wire


class DryRunStep(Wire):
    """One step as it would run."""

    step: str
    agent: str
    model: str | None = None
    """The model that is asked for; the agent's own default when absent."""
    tools: Tools
    wall_seconds: float
    idle_seconds: float
    turns: int
    commands: tuple[str, ...]
    """The files of its prompt: the plan has one for each class of issue."""
    built_in: bool
    """Whether all of them are Septet's own."""


class DryRunReply(Reply):
    """A work order that was not started."""

    repository: str
    base_branch: str
    base_sha: str
    issue_number: str = ""
    title: str = ""
    agent: str
    sandbox: str = ""
    """What confines agents where they work: `bwrap` or `none`; empty where no worker tells."""
    approve_plan: bool = False
    """Whether it waits for a person after planning."""
    plan_only: bool = False
    """Whether it ends with its plan."""
    setup: tuple[str, ...] = ()
    """Of the repository, in each workspace before its first agent."""
    setup_seconds: float = 0.0
    """The time that all of them have together."""
    checks: tuple[str, ...] = ()
    """Of the repository, before a commit."""
    check_seconds: float
    """The time that each of them has."""
    steps: tuple[DryRunStep, ...]
    estimate: Estimate | None = None
    """What it would cost."""
    budgets: Mapping[str, str] = Field(default_factory=dict)
    """The limits that would hold, by whose budget it is: `work order`, `project/o/r`, `day`."""
    unused_settings: str = ""
    """That the checkout's file of settings is not the one that is read, and what helps."""
