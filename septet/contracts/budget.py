"""The calls to the account of a budget, the account's answers, and the account's state."""

from collections.abc import Mapping
from typing import Annotated, Final, Self

from pydantic import Field, StringConstraints

from septet.contracts.amounts import Limit, LimitText, Spending, lower_of, parse_limit
from septet.contracts.costs import SUMMARY
from septet.contracts.names import BUDGET_NAME, REWORK, Step
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
"""The kinds of work that can have a limit each: the steps, the rounds on a pull request and the summaries of a
lane."""

Scope = Annotated[str, StringConstraints(pattern=r"^(day|(order|pipeline|project)/[^\x00-\x1f]{1,200})$")]
"""The owner of a budget: `day`, `order/<id>`, `pipeline/<id>` or `project/<name>`."""
BudgetName = Annotated[str, StringConstraints(pattern=BUDGET_NAME)]
"""The scope in the form that people write, in which a name without a prefix is a work order's id."""


def account_id(task_queue: str, scope: str) -> str:
    """Return the id of the account of a budget."""
    return f"{task_queue}-budget/{scope}"


class Caps(Wire):
    """The amounts that a turn may use before the turn requests more; an absent amount is not limited."""

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None

    def lowered(self, other: "Caps") -> "Caps":
        """Return, for each amount, the lower of the two values."""
        return Caps(
            usd=lower_of(self.usd, other.usd),
            tokens=lower_of(self.tokens, other.tokens),
            seconds=lower_of(self.seconds, other.seconds),
        )


class ReserveCall(Wire):
    """A turn's request to start its agent."""

    key: str
    """The turn's key; a retry of the turn has the same key."""
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
    """A turn's report that its agent has ended."""

    key: str
    used: Spending = Spending()
    """The total use of the turn."""


class BudgetWait(Wire):
    """The reason why a work order waits for a budget, and the command that ends the wait."""

    scope: str
    step: str = ""
    """The step whose limit is reached; empty for the limit of the whole budget."""
    limit: str = ""
    """The limit in its written form."""
    message: str
    remedy: str = ""
    until: str | None = None
    """The time at which a daily limit resets: ISO 8601, UTC."""
    is_spent: bool = True
    """Whether the limit is used up; if not, the rest is reserved for running agents, and the work order continues
    later."""


class Grant(Wire):
    """The account's answer to a turn: the amounts that the turn's agent may use, or the reason to wait."""

    granted: bool = True
    caps: Caps = Caps()
    wait: BudgetWait | None = None
    is_listed: bool = True
    """Whether the account calls the waiting work order when the limit may have room; otherwise `MOST_WAITING`
    other work orders wait, and this work order repeats its request by itself."""


class Hold(Wire):
    """The amounts that the account has reserved for a turn."""

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
    """The state that an account carries from one of its workflow runs to the next."""

    scope: str
    limit: Limit | None = None
    """The limit of the whole budget; without a limit the account only counts."""
    step_limits: Mapping[str, Limit] = Field(default_factory=dict)
    unlimited: tuple[str, ...] = ()
    """The steps whose limit a person removed, and the empty name if a person removed the whole budget's limit. A
    turn sets no new limit in place of a removed limit."""
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
    """The waiting work orders, oldest first."""
    waiting_steps: Mapping[str, str] = Field(default_factory=dict)
    """The step whose limit a work order waits for, by work order; a work order that waits for the whole budget is
    absent."""
    to_call: tuple[str, ...] | None = None
    """Waiting work orders that the account must still call; `None` in the state of an earlier release."""
    looked_at_seconds: Annotated[float, Field(gt=0)] = 3600.0
    """The seconds between two checks whether the account of a work order or pipeline is used; an unused account
    ends."""
    read_at: float | None = None
    """The Unix time at which an ended account's state was read; only the input of a workflow run has this time."""

    def waits_for(self, key: str) -> bool:
        """Say whether a turn's use is not counted yet."""
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
    """A budget, as every interface shows it."""

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
    """The command that lets the first waiting work order continue; empty if all waiting work orders continue by
    themselves, as after a raise."""

    def on(self, day: str) -> Self:
        """Return the view as of an ISO 8601 day, because an account begins a new day only at its next call."""
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
    """A budget after a request to raise its limit."""

    is_raised: bool = True
    """Whether the amount was added; `false` if the limit differed from the expected limit."""


MEMO: str = "quota"
"""The key of a workflow's memo that has the pause; every caller reads the pause before a request."""
LONGEST_PAUSE_SECONDS: float = 32 * 86_400.0
"""The longest pause in seconds, because usage limits reset within a month and a later time is a mistake."""


class QuotaPause(Wire):
    """A pause of a login or of a forge's key, which no agent or request uses until the pause ends."""

    agent: str
    """The agent that the login belongs to, or the host name in the address of a forge's API."""
    login: str = ""
    """The name of a further login; empty for the workers' own login."""
    until: float
    """The end of the pause, in seconds since the epoch."""
    message: str = ""
    """The CLI's message, or a sentence about the forge."""


def quota_id(task_queue: str, login: str) -> str:
    """Return the id of the workflow that runs as long as a login is paused; `login` is a digest, never a key."""
    return f"{task_queue}-quota/{login}"
