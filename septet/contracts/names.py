"""The names that all of Septet uses: agents, steps, statuses, stages, verdicts."""

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal

ORDER_ID: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}")
"""The pattern of a work order's whole id; a folder can have such an id as its name."""
BUDGET_NAME: Final = r"^(day|(order|pipeline|project)/[^\x00-\x1f]{1,200}|[A-Za-z0-9._-]{1,64})$"
BUDGET_NAMES: Final = "`day`, a project such as project/o/r, a pipeline such as pipeline/pl-1, or a work order"
"""The names that `BUDGET_NAME` matches, in words for people."""
SHA256: Final = re.compile("[0-9a-f]{64}")
"""The pattern of a whole SHA-256, such as a plan's."""
AGENTS: Final = ("claude", "codex", "command", "copilot", "gemini", "opencode", "scripted")
"""The names of all agents, listed here because an import of their adapters is slow."""
SETTINGS_PATH: Final = ".septet/septet.toml"
"""The file of a repository's settings, read from the base commit."""
CONTROL: Final = "-control"
"""The ending of the name of a host's control queue."""
SandboxChoice = Literal["auto", "bwrap", "none"]
"""How agents are confined: `auto` is bubblewrap on hosts where it starts, and no sandbox elsewhere."""
Sessions = Literal["separate", "shared"]
"""The use of sessions. `separate`: each step has its own session. `shared`: the planner's steps share one session,
and the implementor's steps another session."""
CostKey = Literal["project", "step", "agent", "login", "model", "week"]
"""The property by which costs are grouped and added up."""


class Step(StrEnum):
    """The seven steps, in the order in which they run."""

    number: int
    """The step's position, from 1 to 7."""

    def __init__(self, _: str) -> None:
        """Give the step its number, from 1."""
        self.number = len(type(self).__members__) + 1

    CLASSIFY_ISSUE = "classify_issue"
    BUILD_PLAN = "build_plan"
    FIND_PLAN_FILE = "find_plan_file"
    GENERATE_BRANCH = "generate_branch"
    IMPLEMENT_PLAN = "implement_plan"
    CREATE_COMMIT = "create_commit"
    CREATE_PULL_REQUEST = "create_pull_request"


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
"""The role of the agent in each step."""
REWORK: Final = "rework"
"""The name of a round on the pull request: of its activity, prompt and folder."""
READ_OUTGOING: Final = "read_outgoing"
"""The name of the reader's turn: of its activity, settings and folder."""


class IssueClass(StrEnum):
    """The kind of work that an issue requests."""

    BUG = "/bug"
    FEATURE = "/feature"
    CHORE = "/chore"


class Status(StrEnum):
    """Whether a work order waits, runs or has ended, and how it ended."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Stage(StrEnum):
    """The stage of a work order on the board."""

    COLLECTED = "collected"
    TRIAGED = "triaged"
    EXECUTING = "executing"
    REVIEW = "review"
    DONE = "done"
    BLOCKED = "blocked"


class Verdict(StrEnum):
    """How a try of a step ended, unless an infrastructure error ended the try."""

    DONE = "done"
    """The worker read the answer and proved that its claim is true."""
    UNPARSED = "unparsed"
    """The agent ended without an error, but the worker could not read the answer: the finalizer requests the
    answer again."""
    UNPROVEN = "unproven"
    """The worker read the answer, but the claim of the answer is not true."""
    REFUSED = "refused"
    """The agent itself reported that the work failed."""
    FAILED = "failed"
    """The agent ended with an error, which states the reason."""
    OVER_BUDGET = "over_budget"
    """A budget is used up: the host keeps the work and the session until the budget has room again."""
    CANCELLED = "cancelled"
    """A person cancelled the work order; a rescue contains the work."""


WATCHER: Final = "watcher"
"""The key, in a watch's memo, for the host that polls the pull request."""
TROUBLE: Final = "trouble"
"""The key, in a watch's memo, for the reason why the state of the pull request is unknown."""
FOLLOWS: Final = "follows"
"""The key, in a watch's memo, of a flag: whether an agent answers events of the pull request."""
LOCAL_PULL: Final = re.compile(r"file://(?P<path>/.+)/pull/(?P<number>[1-9][0-9]{0,8})")
"""The pattern of the address of a pull request of a repository on this machine's disk."""
_WATCH: Final = "/pr"
"""The ending of a watch's id, with a slash because a work order's id contains none."""


def watch_id(order_id: str) -> str:
    """Return the id of the workflow that watches a work order's pull request."""
    return f"{order_id}{_WATCH}"


def watched_order(workflow_id: str) -> str:
    """Return the work order's id from its workflow's id or from the id of its watch."""
    return workflow_id.removesuffix(_WATCH)
