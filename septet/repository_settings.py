"""The settings of a repository: they can restrict what the worker allows, and never extend it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import Field

from septet.contracts.amounts import BudgetText, Limit, parse_limit
from septet.contracts.limits import SomeLimits, StepSettings, Timeouts, Tools, Word
from septet.contracts.names import READ_OUTGOING, Sessions, Step
from septet.contracts.rework import FollowTerms
from septet.contracts.wire import StrictWire
from septet.protected_paths import OnProtected

CHECK_SECONDS: Final = 600.0
"""The time that each check has, where the repository names none."""
SETUP_SECONDS: Final = 1200.0
"""The time that all set-up commands have together, where the repository names none."""

OnFailingBase = Literal["tell", "refuse"]
"""What becomes of a work order whose checks fail on its base commit already."""
_FEWER_FIRST: Final[tuple[Tools, ...]] = ("none", "read", "all")


_NOTHING: Final = StepSettings()
_NAMING: Final = StepSettings(tools="read", wall_seconds=900.0, turns=60)
_WORKING: Final = StepSettings(tools="all")
STEP_TABLE: Final[Mapping[str, StepSettings]] = MappingProxyType(
    {
        Step.CLASSIFY_ISSUE: _NAMING,
        Step.BUILD_PLAN: _WORKING,
        Step.FIND_PLAN_FILE: _NAMING,
        Step.GENERATE_BRANCH: _NAMING,
        Step.IMPLEMENT_PLAN: _WORKING,
        Step.CREATE_COMMIT: _WORKING,
        Step.CREATE_PULL_REQUEST: _WORKING,
        READ_OUTGOING: _NAMING.model_copy(update={"tools": "none"}),
    }
)
"""What each step's agent has where nobody says otherwise: what classifies and names needs no write access.

The repository's settings and what the work order says for all steps come on top: the fewest tools and the lowest
limits count. What the work order says for a step counts before all of them."""


class AllowedFinding(StrictWire):
    """What the scanner for keys may find in a repository."""

    path: str = Field(min_length=1, max_length=1000)
    """A path relative to the repository's root; `*` stands for any characters, `/` among them."""
    rule: str = Field(default="*", min_length=1, max_length=200)
    """The scanner's name for what it looks like; any when absent."""

    def covers(self, path: str, rule: str) -> bool:
        """Say whether a finding is one of these."""
        return fnmatchcase(path, self.path) and fnmatchcase(rule, self.rule)


_Accounts = Annotated[list[Word], Field(max_length=20)]
_Label = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^,\x00-\x1f\x7f]+$")]
_Labels = Annotated[list[_Label], Field(max_length=20)]


class PullRequestSettings(StrictWire):
    """What a repository asks for its pull requests."""

    draft: bool = False
    """Open each as a draft, also where the work order does not ask for one."""
    labels: _Labels = Field(default_factory=list)
    """Beside those that the work order names."""
    reviewers: _Accounts = Field(default_factory=list)
    """Accounts that are asked for a review."""
    assignees: _Accounts = Field(default_factory=list)
    """Accounts that it is given to."""
    closes_issue: bool = True
    """Whether its merge closes the issue, where that has a number."""
    plan: Literal["commit", "body", "none"] = "commit"
    """Where people read the plan: in a file of the branch, in the pull request's text, or not there at all."""
    follow: bool = False
    """Whether the agent answers what happens on it, also where the work order does not ask for it."""
    follow_label: _Label | None = None
    """The label by which an issue asks for that."""
    follow_rounds: Annotated[int, Field(ge=1, le=20)] = 3
    """How often the agent may work on it."""
    follow_hours: Annotated[float, Field(gt=0, le=168)] = 4.0
    """How long all rounds together may take."""
    follow_budget: BudgetText | None = None
    """What the agents of all rounds together may use."""
    follow_quiet_hours: Annotated[float, Field(gt=0, le=2160)] = 168.0
    """How long nothing may be new on it until it is followed no more."""

    def follow_terms(self, labels: Sequence[str]) -> FollowTerms:
        """Return how far agents follow the pull request of an issue with some labels."""
        return FollowTerms(
            by_default=self.follow or (self.follow_label is not None and self.follow_label in labels),
            rounds=self.follow_rounds,
            work_seconds=self.follow_hours * 3600,
            quiet_seconds=self.follow_quiet_hours * 3600,
        )


@dataclass(frozen=True, slots=True)
class RepositorySettings:
    """What a repository asks for the work orders on it. It can ask for less than is allowed, never for more."""

    agent: str | None = None
    """The agent for work orders that name none."""
    fallback_agent: str | None = None
    """The agent that takes over at a usage limit, for work orders that name none."""
    model: str | None = None
    """The model for work orders that name none, in steps that have none of their own."""
    sessions: Sessions | None = None
    """Whether steps share sessions, for work orders that do not say."""
    limits: SomeLimits = field(default_factory=SomeLimits)
    """For every step."""
    steps: Mapping[str, StepSettings] = field(default_factory=dict)
    setup: tuple[tuple[str, ...], ...] = ()
    """Programs with their arguments, run one after the other in each workspace before its first agent."""
    setup_seconds: float = SETUP_SECONDS
    """The time that all of them have together."""
    checks: tuple[tuple[str, ...], ...] = ()
    """Programs with their arguments, run one after the other before a commit."""
    check_seconds: float = CHECK_SECONDS
    """The time that each of them has."""
    on_failing_base: OnFailingBase = "tell"
    """What becomes of a work order where one fails on its base commit already."""
    branch_prefix: str | None = None
    """What the branches of work orders begin with; the worker's setting says so where it is `None`."""
    allow_findings: tuple[AllowedFinding, ...] = ()
    """What the scanner for keys may find in new lines."""
    protected: tuple[str, ...] | None = None
    """Paths whose changes wait for a person; the worker's choice where there are none."""
    on_protected: OnProtected | None = None
    """What becomes of these changes; the worker's choice when absent."""
    read_outgoing: bool = False
    """Whether a second agent reads what is about to leave, also where the worker does not ask for it."""
    assisted_by: bool = True
    """Whether the engine's commits name the agent in a trailer."""
    sign_off: bool = False
    """Whether all commits end with the committer's `Signed-off-by`."""
    progress_comment: bool = False
    """Whether one comment on the issue tells how the work gets on."""
    stage_labels: bool = False
    """Whether a label on the issue tells its stage."""
    pull_request: PullRequestSettings = field(default_factory=PullRequestSettings)
    budget: str | None = None
    """The most that the agents of a work order may use."""

    def budget_for(self, text: str) -> Limit | None:
        """Return what a work order may use: what it says itself, or less."""
        return _lower_limit(text, self.budget)

    def budget_for_step(self, step: str, by_order: StepSettings = _NOTHING) -> Limit | None:
        """Return what a step may use: what the work order says for it, or less."""
        return _lower_limit(by_order.budget, self._own(step).budget)

    def budget_for_rounds(self, text: str | None) -> Limit | None:
        """Return what all rounds on a pull request together may use: what the worker lets them, or less."""
        return _lower_limit(text, self.pull_request.follow_budget)

    def model_for(
        self,
        step: str,
        by_order: str | None = None,
        by_order_for_step: StepSettings = _NOTHING,
        by_worker: str | None = None,
    ) -> str | None:
        """Return the model for `step`; `None` for the agent's own default.

        What is said for the step counts before what is said for all, and the work order before the repository.
        """
        for_step = by_order_for_step.model or self._own(step).model
        return for_step or by_order or self.model or by_worker

    def limits_for(self, step: str, bounds: Timeouts, by_order: StepSettings = _NOTHING) -> Timeouts:
        """Return the limits for `step`: those that the work order names for it, else the lowest of all."""
        return by_order.over(self._lowest(step, bounds))

    def tools_for(self, step: str, by_order: StepSettings = _NOTHING, *, one_process: bool = False) -> Tools:
        """Return what the agent of `step` may use: what the work order names for it, else the fewest.

        One process for all steps of a workspace has the tools of those that work there; its steps' evidence holds
        what it does against what it was asked for.
        """
        usual = _WORKING.tools if one_process else STEP_TABLE[step].tools
        wished = (by_order.tools,) if by_order.tools else (usual, self._own(step).tools)
        return min((tools for tools in wished if tools is not None), key=_FEWER_FIRST.index)

    def _lowest(self, step: str, bounds: Timeouts) -> Timeouts:
        lower = (self.limits, self._own(step), STEP_TABLE[step])
        return Timeouts(
            wall_seconds=min(filter(None, (bounds.wall_seconds, *(limits.wall_seconds for limits in lower)))),
            idle_seconds=min(filter(None, (bounds.idle_seconds, *(limits.idle_seconds for limits in lower)))),
            turns=min(filter(None, (bounds.turns, *(limits.turns for limits in lower)))),
        )

    def _own(self, step: str) -> StepSettings:
        return self.steps.get(step, _NOTHING)


def _lower_limit(*texts: str | None) -> Limit | None:
    """Return the lowest of some limits as they are written."""
    lowest: Limit | None = None
    for limit in (parse_limit(text) for text in texts if text):
        lowest = limit if lowest is None else lowest.lowered(limit)
    return lowest
