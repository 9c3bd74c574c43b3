"""The calls to the account of a budget, the account's answers and state, and the replies about budgets."""

from collections.abc import Mapping
from typing import Annotated, Final, Self

from pydantic import Field, StringConstraints

from septet.contracts.amounts import BudgetWait, Limit, LimitText, Spending, lower_of, parse_limit
from septet.contracts.costs import SUMMARY
from septet.contracts.names import BUDGET_NAME, REWORK, Step
from septet.contracts.replies import PagedReply, Reply
from septet.contracts.wire import StrictWire, Wire

MOST_WAITING: Final = 2000
MOST_HOLDS: Final = 2000
DAYS_KEPT: Final = 31
DAY_SECONDS: Final = 86_400.0
DAY: Final = "day"
ORDER: Final = "order"
PIPELINE: Final = "pipeline"
PROJECT: Final = "project"
STEPS: Final = (*(step.value for step in Step), REWORK, SUMMARY)
"""The kinds of work that can have their own limit: the steps, the rounds and the summaries."""

Scope = Annotated[str, StringConstraints(pattern=r"^(day|(order|pipeline|project)/[^\x00-\x1f]{1,200})$")]
"""What a budget is for: `day`, `order/<id>`, `pipeline/<id>` or `project/<name>`."""
BudgetName = Annotated[str, StringConstraints(pattern=BUDGET_NAME)]
"""A scope as people write it; a name without a prefix is a work order's id."""


def account_id(task_queue: str, scope: str) -> str:
    """Return the workflow id of a budget's account."""
    return f"{task_queue}-budget/{scope}"


class Caps(Wire):
    """The amounts that an agent may use before its turn must reserve more; an absent amount is not limited."""

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None

    def lowered(self, other: "Caps") -> "Caps":
        """Return the lower of both values for each amount."""
        return Caps(
            usd=lower_of(self.usd, other.usd),
            tokens=lower_of(self.tokens, other.tokens),
            seconds=lower_of(self.seconds, other.seconds),
        )


class ReserveCall(Wire):
    """A turn's request for a reservation, before its agent starts or uses more."""

    key: str
    """The turn's key, which is the same in each retry."""
    order_id: str
    step: str = ""
    limit: Limit | None = None
    """The limit to set for the whole budget if the account has no limit yet."""
    step_limit: Limit | None = None
    """The limit to set for the step if the account has no limit of this step yet."""
    so_far: Spending = Spending()
    """The turn's use up to now."""
    wall_seconds: float = DAY_SECONDS
    """The most seconds that the agent may run."""


class SettleCall(Wire):
    """A turn's report of what it used, after its agent has ended."""

    key: str
    used: Spending = Spending()
    """The total use of the turn."""


class Grant(Wire):
    """The account's reply to a turn: the amounts that its agent may use, or the reason to wait."""

    granted: bool = True
    caps: Caps = Caps()
    wait: BudgetWait | None = None
    is_listed: bool = True
    """Whether the account signals the waiting work order when there may be room. If not, `MOST_WAITING` others
    wait, and the work order must request again by itself."""


class Hold(Wire):
    """The amounts that an account has reserved for one turn."""

    key: str
    order_id: str
    step: str = ""
    before: Spending = Spending()
    """The part of the turn's use that the account has counted already."""
    caps: Caps = Caps()
    is_open: bool = True
    """Whether the agent may still run; otherwise the account waits only for the report of the agent's use."""
    ends_at: float | None = None
    """The Unix time after which the agent no longer runs even if no report came; `None` in older runs."""


class AccountState(Wire):
    """The state that an account's workflow passes to its next run."""

    scope: str
    limit: Limit | None = None
    """The limit of the whole budget; without a limit the account only counts."""
    step_limits: Mapping[str, Limit] = Field(default_factory=dict)
    unlimited: tuple[str, ...] = ()
    """The steps whose limit a person has removed, and an empty name for the whole budget's limit. A turn sets no
    new limit in place of a removed one."""
    total: Spending = Spending()
    day: str = ""
    """The day of `today`: ISO 8601, UTC."""
    today: Spending = Spending()
    by_step: Mapping[str, Spending] = Field(default_factory=dict)
    today_by_step: Mapping[str, Spending] = Field(default_factory=dict)
    dearest: Mapping[str, Spending] = Field(default_factory=dict)
    """The largest use of one turn, by step."""
    days: tuple[tuple[str, Spending], ...] = ()
    """The last days before today, oldest first."""
    holds: tuple[Hold, ...] = ()
    waiting: tuple[str, ...] = ()
    """The waiting work orders, oldest first, which the account signals."""
    waiting_steps: Mapping[str, str] = Field(default_factory=dict)
    """For each waiting work order, the step whose limit it waits for; absent if it waits for the whole budget."""
    to_call: tuple[str, ...] | None = None
    """The waiting work orders that must still be signalled; `None` in the state of an earlier release."""
    looked_at_seconds: Annotated[float, Field(gt=0)] = 3600.0
    """The seconds between two checks whether the account of a work order or pipeline is idle and can end."""
    read_at: float | None = None
    """When an ended account's state was read, in Unix seconds; only in the input of a new run."""

    def waits_for(self, key: str) -> bool:
        """Return whether the account still has to count the use of the turn `key`."""
        return any(hold.key == key for hold in self.holds)


class LimitCall(StrictWire):
    """A change of a budget's limit."""

    limit: LimitText
    """The limit, or `none` to remove it; for a raise, the amount to add."""
    step: Annotated[str, StringConstraints(max_length=40)] = ""
    """The step to limit; empty for the whole budget."""
    who: Annotated[str, StringConstraints(max_length=200)] = ""


class RaiseCall(LimitCall):
    """A raise of a budget by an amount."""

    expected: Annotated[str, StringConstraints(max_length=100)] = ""
    """The limit that you saw: if the present limit differs, the amount is not added. Empty: the amount is added in
    any case."""


class AccountView(Wire):
    """A budget as people and programs see it."""

    scope: str
    limit: str = ""
    """The limit in its written form; empty if the budget has no limit."""
    step_limits: Mapping[str, str] = Field(default_factory=dict)
    spent: Spending = Spending()
    """The use that counts against the limit; for a daily limit, today's use."""
    total: Spending = Spending()
    by_step: Mapping[str, Spending] = Field(default_factory=dict)
    today_by_step: Mapping[str, Spending] = Field(default_factory=dict)
    """The use that counts against the daily limits of steps."""
    day: str = ""
    """The day of `today`: ISO 8601, UTC."""
    today: Spending = Spending()
    days: tuple[tuple[str, Spending], ...] = ()
    """The days before `today`, oldest first."""
    running: int = 0
    """The number of agents that use the budget now."""
    waiting: tuple[str, ...] = ()
    """The first work orders that wait for the budget."""
    waiting_count: int = 0
    remedy: str = ""
    """The command that lets the first waiting work order continue; empty if none is needed."""

    def on(self, day: str) -> Self:
        """Return the view as of `day` (ISO 8601): the account itself begins a new day only at its next call."""
        if not self.day or day <= self.day:
            return self
        is_daily = bool(self.limit) and parse_limit(self.limit).daily
        return self.model_copy(
            update={
                "day": day,
                "today": Spending(),
                "today_by_step": {},
                "days": (*self.days, (self.day, self.today))[-DAYS_KEPT:],
                "spent": Spending() if is_daily else self.spent,
            }
        )


class RaiseView(AccountView):
    """A budget after a request to raise it."""

    is_raised: bool = True
    """Whether the amount was added; `false` if the limit differed from the expected limit."""


class BudgetReply(Reply):
    """The reply to every request about a budget."""

    budget: AccountView


class RaiseReply(BudgetReply):
    """The reply to a raise of a budget."""

    is_raised: bool
    """Whether the amount was added; `false` if the limit was not the expected limit, as for a repeated request."""


class BudgetsReply(PagedReply):
    """The budgets of an installation; the budgets of the day and of projects come first."""

    budgets: tuple[AccountView, ...]
