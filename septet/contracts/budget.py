"""What an account of a budget is asked and told, and what it knows."""

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
"""What a budget can limit apart: the steps, the rounds on a pull request and the summaries of a lane."""

Scope = Annotated[str, StringConstraints(pattern=r"^(day|(order|pipeline|project)/[^\x00-\x1f]{1,200})$")]
"""Whose budget it is: `day`, `order/<id>`, `pipeline/<id>` or `project/<name>`."""


BudgetName = Annotated[str, StringConstraints(pattern=BUDGET_NAME)]
"""A scope as people write it: a name alone is a work order's."""


def account_id(task_queue: str, scope: str) -> str:
    """Return the id of the account of a budget."""
    return f"{task_queue}-budget/{scope}"


class Caps(Wire):
    """What a turn may use before it asks again; what is absent is not limited."""

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None

    def lowered(self, other: "Caps") -> "Caps":
        """Return the lower of two, in each amount."""
        return Caps(
            usd=lower_of(self.usd, other.usd),
            tokens=lower_of(self.tokens, other.tokens),
            seconds=lower_of(self.seconds, other.seconds),
        )


class ReserveCall(Wire):
    """An agent is about to start."""

    key: str
    """Names the turn: a retry of the same has the same key."""
    order_id: str
    step: str = ""
    limit: Limit | None = None
    """The whole budget's, where the account has none yet."""
    step_limit: Limit | None = None
    """The step's own, where it has one that the account does not know yet."""
    so_far: Spending = Spending()
    """What the turn has used up to now."""
    wall_seconds: float = DAY_SECONDS
    """How long the agent may run, at the most."""


class SettleCall(Wire):
    """A turn is over, for now."""

    key: str
    used: Spending = Spending()
    """What it used in all."""


class BudgetWait(Wire):
    """Why a work order waits for a budget, and who can change that."""

    scope: str
    step: str = ""
    """The step whose limit it is; empty for the limit of the whole budget."""
    limit: str = ""
    """As it is written."""
    message: str
    remedy: str = ""
    until: str | None = None
    """When a daily limit resets: ISO 8601, UTC."""
    is_spent: bool = True
    """Whether it is used up; else agents that are running hold the rest, and it opens again by itself."""


class Grant(Wire):
    """The account's answer: go on, within these bounds, or wait."""

    granted: bool = True
    caps: Caps = Caps()
    wait: BudgetWait | None = None
    is_listed: bool = True
    """Whether the account calls who has to wait once there may be room; else `MOST_WAITING` wait before, and the
    work order asks again by itself."""


class Hold(Wire):
    """What a turn may still use."""

    key: str
    order_id: str
    step: str = ""
    before: Spending = Spending()
    """What of it is counted already."""
    caps: Caps = Caps()
    is_open: bool = True
    """Whether its agent may still run; else only its figures are waited for."""
    ends_at: float | None = None
    """When its agent does not run any longer, whoever tells of its end, in Unix seconds; unknown to older runs."""


class AccountState(Wire):
    """What an account knows, from one of its runs to the next."""

    scope: str
    limit: Limit | None = None
    """Nothing is limited where there is none; it counts all the same."""
    step_limits: Mapping[str, Limit] = Field(default_factory=dict)
    unlimited: tuple[str, ...] = ()
    """Steps whose limit somebody has removed, empty for the whole budget: no turn brings another one."""
    total: Spending = Spending()
    day: str = ""
    """The day of `today`: ISO 8601, UTC."""
    today: Spending = Spending()
    by_step: Mapping[str, Spending] = Field(default_factory=dict)
    today_by_step: Mapping[str, Spending] = Field(default_factory=dict)
    dearest: Mapping[str, Spending] = Field(default_factory=dict)
    """By step: the most that one turn used."""
    days: tuple[tuple[str, Spending], ...] = ()
    """The last days before today, oldest first."""
    holds: tuple[Hold, ...] = ()
    waiting: tuple[str, ...] = ()
    """Work orders, oldest first."""
    waiting_steps: Mapping[str, str] = Field(default_factory=dict)
    """By work order: the step whose limit it waits for; those that wait for the whole budget are not there."""
    to_call: tuple[str, ...] | None = None
    """Those of them that are to ask again and were not called yet; `None` where an earlier release did not say."""
    looked_at_seconds: Annotated[float, Field(gt=0)] = 3600.0
    """How often the account of a work order or a pipeline looks whether anybody still uses it: else it ends."""
    read_at: float | None = None
    """When somebody looked up what the account had ended with, in Unix seconds; only what begins a run has it."""

    def waits_for(self, key: str) -> bool:
        """Say whether what a turn used is still to be counted."""
        return any(hold.key == key for hold in self.holds)


class LimitCall(StrictWire):
    """Set a budget, or raise it."""

    limit: LimitText
    """The limit, or `none` to remove it; for a raise, the amount to add."""
    step: Annotated[str, StringConstraints(max_length=40)] = ""
    """The step to limit; the whole budget when empty."""
    who: Annotated[str, StringConstraints(max_length=200)] = ""


class RaiseCall(LimitCall):
    """Raise a budget by an amount."""

    expected: Annotated[str, StringConstraints(max_length=100)] = ""
    """The limit as it was seen: nothing is added to another one. Empty to add in any case."""


class AccountView(Wire):
    """A budget as people see it."""

    scope: str
    limit: str = ""
    """The limit as you write it; empty if there is none."""
    step_limits: Mapping[str, str] = Field(default_factory=dict)
    spent: Spending = Spending()
    """What counts against the limit; for a daily limit, today's use."""
    total: Spending = Spending()
    by_step: Mapping[str, Spending] = Field(default_factory=dict)
    today_by_step: Mapping[str, Spending] = Field(default_factory=dict)
    """What counts against the daily limits of steps."""
    day: str = ""
    """The day of `today`: ISO 8601, UTC."""
    today: Spending = Spending()
    days: tuple[tuple[str, Spending], ...] = ()
    """The last days before, oldest first."""
    running: int = 0
    """Agents that are using it now."""
    waiting: tuple[str, ...] = ()
    """The first work orders that wait for it."""
    waiting_count: int = 0
    remedy: str = ""
    """The command that lets the first of them continue; empty if all of them ask again now, as after a raise."""

    def on(self, day: str) -> Self:
        """Return it as it is on a day, ISO 8601: its account begins a day only with the next word."""
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
    """A budget after a raise."""

    is_raised: bool = True
    """Whether the amount was added; not where the limit was no longer the one that was expected."""


MEMO: str = "quota"
"""The key of the workflow's memo under which the pause lies: whoever is about to ask reads it there."""
LONGEST_PAUSE_SECONDS: float = 32 * 86_400.0
"""Limits begin anew within a month: a moment that is farther away is a mistake."""


class QuotaPause(Wire):
    """Nobody starts an agent with this login, or asks a forge with this key, until then."""

    agent: str
    """Whose login it is: an agent's, or by its host a forge's API."""
    login: str = ""
    """The name of the further login that it is; empty for the workers' own."""
    until: float
    """Seconds since the epoch."""
    message: str = ""
    """The CLI's words, or what is to be known of the forge."""


def quota_id(task_queue: str, login: str) -> str:
    """Return the id of the workflow that lives as long as a login is paused.

    Args:
        task_queue: The queue of work orders.
        login: A digest of the login; never the key.
    """
    return f"{task_queue}-quota/{login}"
