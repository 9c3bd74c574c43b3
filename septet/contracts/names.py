"""The words of the project as enumerations: steps, statuses, stages, verdicts."""

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal

ORDER_ID: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}")
"""The whole of a work order's id, which is also a folder's name."""
BUDGET_NAME: Final = r"^(day|(order|pipeline|project)/[^\x00-\x1f]{1,200}|[A-Za-z0-9._-]{1,64})$"
BUDGET_NAMES: Final = "`day`, a project such as project/o/r, a pipeline such as pipeline/pl-1, or a work order"
"""What `BUDGET_NAME` says, for people."""
SHA256: Final = re.compile("[0-9a-f]{64}")
"""The whole of a SHA-256, such as a plan's, as people and programs write it."""
AGENTS: Final = ("claude", "codex", "command", "copilot", "gemini", "opencode", "scripted")
"""The agents there are: their adapters, `septet.agents.clis.registry`, take long to import."""
SETTINGS_PATH: Final = ".septet/septet.toml"
"""A repository's own settings, as of the base commit."""
CONTROL: Final = "-control"
"""What the name of a host's control queue ends with."""
SandboxChoice = Literal["auto", "bwrap", "none"]
"""What is to confine agents: bubblewrap, nothing, or bubblewrap where it can start."""


Sessions = Literal["separate", "shared"]
"""Each step has a session of its own, or the planner's steps share one, and the implementor's another one."""


CostKey = Literal["project", "step", "agent", "login", "model", "week"]
"""What costs are added up by."""


class Step(StrEnum):
    """The seven steps, in the order in which they run."""

    CLASSIFY_ISSUE = "classify_issue"
    BUILD_PLAN = "build_plan"
    FIND_PLAN_FILE = "find_plan_file"
    GENERATE_BRANCH = "generate_branch"
    IMPLEMENT_PLAN = "implement_plan"
    CREATE_COMMIT = "create_commit"
    CREATE_PULL_REQUEST = "create_pull_request"

    @property
    def number(self) -> int:
        """The step's place in the order, from 1."""
        return list(Step).index(self) + 1


AGENT_NAMES: Final[Mapping[Step, str]] = MappingProxyType(
    {
        Step.CLASSIFY_ISSUE: "classifier",
        Step.BUILD_PLAN: "planner",
        Step.FIND_PLAN_FILE: "plan_finder",
        Step.GENERATE_BRANCH: "branch_generator",
        Step.IMPLEMENT_PLAN: "implementor",
        Step.CREATE_COMMIT: "committer",
        Step.CREATE_PULL_REQUEST: "pr_creator",
    }
)
"""The role that the agent plays in each step."""


REWORK: Final = "rework"
"""What comes after the seven, where an agent follows the pull request: activity, command, folder."""
READ_OUTGOING: Final = "read_outgoing"
"""What comes before each push, where a second agent reads what is about to leave: activity, settings, folder."""


class IssueClass(StrEnum):
    """What kind of work an issue asks for."""

    BUG = "/bug"
    FEATURE = "/feature"
    CHORE = "/chore"


class Status(StrEnum):
    """Where a work order is, seen by the engine."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Stage(StrEnum):
    """Where a work order is, seen on the board."""

    COLLECTED = "collected"
    TRIAGED = "triaged"
    EXECUTING = "executing"
    REVIEW = "review"
    DONE = "done"
    BLOCKED = "blocked"


class Verdict(StrEnum):
    """How a try of a step ended, short of an infrastructure error."""

    DONE = "done"
    """The answer was read and proven."""
    UNPARSED = "unparsed"
    """The agent ended well, but its answer could not be read: the finalizer asks again."""
    UNPROVEN = "unproven"
    """The answer was read, but what it claims is not so."""
    REFUSED = "refused"
    """The agent said itself that the work failed."""
    FAILED = "failed"
    """The agent ended with an error, which says why."""
    OVER_BUDGET = "over_budget"
    """A budget is used up: the work is kept, with its session, until the budget is open again."""
    CANCELLED = "cancelled"
    """A person cancelled the work order; what was done is in a rescue."""
