"""A repository's settings, which can restrict the worker's settings and never loosen them.

`openings_of` names the budget accounts that must allow an agent under these settings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import Field

from septet.budgets.account import DAY, ORDER, PIPELINE, PROJECT, AccountState
from septet.contracts.amounts import BudgetText, Limit, parse_limit
from septet.contracts.lanes import SummariseCall
from septet.contracts.names import READ_OUTGOING, Sessions, Step
from septet.contracts.order import SomeLimits, StepSettings, Timeouts, Tools, Word
from septet.contracts.rework import FollowTerms
from septet.contracts.steps import StepCall
from septet.contracts.wire import StrictWire
from septet.protected_paths import OnProtected
from septet.settings import Settings

CHECK_SECONDS: Final = 600.0
"""The most seconds for each check, if the repository names no limit."""
SETUP_SECONDS: Final = 1200.0
"""The most seconds for all set-up commands together, if the repository names no limit."""

OnFailingBase = Literal["tell", "refuse"]
"""What happens to a work order whose checks already fail on its base commit."""
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
"""The default settings of each step's agent: an agent that only classifies or names may not write files.

The other settings can only restrict them, except the work order's settings for one step, which take precedence.
"""


class AllowedFinding(StrictWire):
    """The paths, and the kind of key, of scanner findings that a repository's settings allow."""

    path: str = Field(min_length=1, max_length=1000)
    """A path relative to the repository's root; `*` stands for any characters, `/` among them."""
    rule: str = Field(default="*", min_length=1, max_length=200)
    """The scanner's name for the kind of key; any kind when absent."""

    def covers(self, path: str, rule: str) -> bool:
        """Return whether a finding of kind `rule` at a path is allowed."""
        return fnmatchcase(path, self.path) and fnmatchcase(rule, self.rule)


_Accounts = Annotated[list[Word], Field(max_length=20)]
_Label = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^,\x00-\x1f\x7f]+$")]


class PullRequestSettings(StrictWire):
    """What a repository wants for its pull requests."""

    draft: bool = False
    """Whether each pull request is opened as a draft, even if the work order does not request a draft."""
    labels: Annotated[list[_Label], Field(max_length=20)] = Field(default_factory=list)
    """The labels that the pull request gets in addition to the work order's labels."""
    reviewers: _Accounts = Field(default_factory=list)
    """Accounts from which a review is requested."""
    assignees: _Accounts = Field(default_factory=list)
    """Accounts to which the pull request is assigned."""
    closes_issue: bool = True
    """Whether the merge closes the issue, if the issue has a number."""
    plan: Literal["commit", "body", "none"] = "commit"
    """The place of the plan: a file of the branch (`commit`), the pull request's text (`body`), or neither
    (`none`)."""
    follow: bool = False
    """Whether the agent answers events on the pull request, even if the work order does not request answers."""
    follow_label: _Label | None = None
    """The label with which an issue requests an agent that answers events on the pull request."""
    follow_rounds: Annotated[int, Field(ge=1, le=20)] = 3
    """The most rounds of the agent on the pull request."""
    follow_hours: Annotated[float, Field(gt=0, le=168)] = 4.0
    """The most hours of work for all rounds together."""
    follow_budget: BudgetText | None = None
    """The limit for the agents of all rounds together."""
    follow_quiet_hours: Annotated[float, Field(gt=0, le=2160)] = 168.0
    """The hours without an event on the pull request after which the agent stops following it."""

    def follow_terms(self, labels: Sequence[str]) -> FollowTerms:
        """Return the limits within which agents follow the pull request of an issue with these labels."""
        return FollowTerms(
            by_default=self.follow or (self.follow_label is not None and self.follow_label in labels),
            rounds=self.follow_rounds,
            work_seconds=self.follow_hours * 3600,
            quiet_seconds=self.follow_quiet_hours * 3600,
        )


@dataclass(frozen=True, slots=True)
class RepositorySettings:
    """A repository's settings for its work orders, which can only restrict the worker's; see docs/commands.md."""

    agent: str | None = None
    fallback_agent: str | None = None
    model: str | None = None
    sessions: Sessions | None = None
    limits: SomeLimits = field(default_factory=SomeLimits)
    steps: Mapping[str, StepSettings] = field(default_factory=dict)
    setup: tuple[tuple[str, ...], ...] = ()
    """The set-up commands, each a program with arguments, which run in order in each workspace before the first
    agent."""
    setup_seconds: float = SETUP_SECONDS
    checks: tuple[tuple[str, ...], ...] = ()
    """The checks, each a program with arguments, which run in order before a commit."""
    check_seconds: float = CHECK_SECONDS
    on_failing_base: OnFailingBase = "tell"
    branch_prefix: str | None = None
    """The prefix of the branches of work orders; `None` for the worker's setting."""
    allow_findings: tuple[AllowedFinding, ...] = ()
    protected: tuple[str, ...] | None = None
    """The protected paths, whose changes wait for a person; `None` for the worker's choice."""
    on_protected: OnProtected | None = None
    """The treatment of changes of protected paths; `None` for the worker's choice."""
    read_outgoing: bool = False
    assisted_by: bool = True
    sign_off: bool = False
    progress_comment: bool = False
    stage_labels: bool = False
    pull_request: PullRequestSettings = field(default_factory=PullRequestSettings)
    budget: str | None = None

    def budget_for(self, text: str) -> Limit | None:
        """Return a work order's limit: each amount is the lower one of `text` and the repository's limit."""
        return _lower_limit(text, self.budget)

    def budget_for_step(self, step: str, by_order: StepSettings = _NOTHING) -> Limit | None:
        """Return a step's limit: each amount is the lower one of the work order's and the repository's limits."""
        return _lower_limit(by_order.budget, self._own(step).budget)

    def budget_for_rounds(self, text: str | None) -> Limit | None:
        """Return the limit for all rounds: each amount is the lower one of `text` and the repository's limit."""
        return _lower_limit(text, self.pull_request.follow_budget)

    def model_for(
        self,
        step: str,
        by_order: str | None = None,
        by_order_for_step: StepSettings = _NOTHING,
        by_worker: str | None = None,
    ) -> str | None:
        """Return the model for a step; `None` for the agent's own default.

        Precedence: `by_order_for_step`, the repository's for the step, `by_order`, the repository's, `by_worker`.
        """
        for_step = by_order_for_step.model or self._own(step).model
        return for_step or by_order or self.model or by_worker

    def limits_for(self, step: str, bounds: Timeouts, by_order: StepSettings = _NOTHING) -> Timeouts:
        """Return a step's limits: each from `by_order`, else the lowest of `bounds`, repository and default."""
        lower: tuple[Timeouts | SomeLimits, ...] = (bounds, self.limits, self._own(step), STEP_TABLE[step])
        return Timeouts(
            wall_seconds=by_order.wall_seconds or min(each.wall_seconds for each in lower if each.wall_seconds),
            idle_seconds=by_order.idle_seconds or min(each.idle_seconds for each in lower if each.idle_seconds),
            turns=by_order.turns or min(each.turns for each in lower if each.turns),
        )

    def tools_for(self, step: str, by_order: StepSettings = _NOTHING, *, one_process: bool = False) -> Tools:
        """Return a step's tools: those of `by_order`, else the stricter of Septet's and the repository's choice.

        With `one_process`, one process serves all steps of a workspace, and has the tools of the steps that write.
        Git's evidence then shows whether a step did more than its task.
        """
        usual = _WORKING.tools if one_process else STEP_TABLE[step].tools
        wished = (by_order.tools,) if by_order.tools else (usual, self._own(step).tools)
        return min((tools for tools in wished if tools is not None), key=("none", "read", "all").index)

    def _own(self, step: str) -> StepSettings:
        return self.steps.get(step, _NOTHING)


def _lower_limit(*texts: str | None) -> Limit | None:
    """Parse some limits; return the lowest value of each amount, or `None` if there is no limit."""
    lowest: Limit | None = None
    for limit in (parse_limit(text) for text in texts if text):
        lowest = limit if lowest is None else lowest.lowered(limit)
    return lowest


@dataclass(frozen=True, slots=True)
class Opening:
    """An account that must allow the start of an agent, with the limits of the reservation."""

    account: AccountState
    step_limit: Limit | None = None
    """The limit of the step, in the account of its work order; `None` in all other accounts."""

    @property
    def opens(self) -> bool:
        """Whether a reservation opens the account; if not, only a person can open it, by setting a budget."""
        return self.account.limit is not None or self.step_limit is not None


def openings_of(
    settings: Settings, call: StepCall | SummariseCall, repository: RepositorySettings
) -> list[Opening]:
    """Return the accounts that must allow an agent to start for a step or for a lane's summary."""
    step_limit, pipeline = None, call.pipeline
    if isinstance(call, StepCall):
        pipeline = call.pipeline or call.pays_from
        if call.rework is not None and not call.reads:
            step_limit = repository.budget_for_rounds(settings.follow_budget)
        else:
            step_limit = repository.budget_for_step(call.table, call.settings)
    limit = repository.budget_for(call.budget or settings.order_budget or "")
    order = AccountState(scope=f"{ORDER}/{call.workspace.work_order_id}", limit=limit)
    openings = [Opening(order, step_limit)]
    if pipeline:
        openings.append(Opening(AccountState(scope=f"{PIPELINE}/{pipeline}", limit=_limit(call.pipeline_budget))))
    day = _limit(settings.day_budget)
    day = day.model_copy(update={"daily": True}) if day is not None else None
    project = call.project or call.workspace.project
    of_project = AccountState(scope=f"{PROJECT}/{project}", limit=_limit(settings.project_budget))
    return [*openings, Opening(of_project), Opening(AccountState(scope=DAY, limit=day))]


def _limit(text: str | None) -> Limit | None:
    return parse_limit(text) if text else None
