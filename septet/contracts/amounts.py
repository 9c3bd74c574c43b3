"""The amounts of a budget (US dollars, tokens, minutes of agents), the text of a limit, and the wait for room."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Final, Self, TypeVar

from pydantic import AfterValidator, Field, StringConstraints

from septet.contracts.facts import Usage
from septet.contracts.wire import Wire

EXAMPLES: Final = "5usd, 2Mtok or 90min, or several of them with commas"
NO_LIMIT: Final = "none"
"""The word that removes a limit, in place of an amount."""
_DAILY: Final = "/day"
_PART: Final = re.compile(r"(\d{1,18}(?:\.\d{1,6})?)\s*([a-z$]+)")
_UNITS: Final[Mapping[str, tuple[str, float]]] = {
    "usd": ("usd", 1.0),
    "tok": ("tokens", 1.0),
    "ktok": ("tokens", 1e3),
    "mtok": ("tokens", 1e6),
    "min": ("minutes", 1.0),
    "h": ("minutes", 60.0),
}
_MOST: Final = 1e15
"""The largest number of dollars, tokens or minutes in a limit, because `_PART` reads no more digits."""
_TOKEN_UNITS: Final = ((1_000_000, "Mtok"), (1_000, "ktok"))
_CENT_PARTS: Final = 6
"""The number of decimals to which dollars are rounded, so that sums stay exact."""
_CENT: Final = 0.01
_SECONDS: Final = 60.0


def cost_text(usage: Usage) -> str:
    """Return the cost in words; empty if nothing was used."""
    if usage.cost_usd is None or (usage.cost_is_partial and not usage.cost_usd):
        return "cost unknown" if usage.tokens else ""
    return f"{'at least ' if usage.cost_is_partial else ''}{usd_text(usage.cost_usd)} USD"


class Spending(Wire):
    """The dollars, tokens and time that agents used."""

    usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    turns: int = 0
    """The number of agent runs."""
    unpriced: int = 0
    """The number of runs without a known cost, which count as 0 dollars. The CLI reported no cost, or the run was
    killed first."""

    @classmethod
    def of(cls, usage: Usage, seconds: float) -> Self:
        """Return the use of one run, as its CLI reported it."""
        unpriced = int(usage.cost_usd is None and usage.tokens > 0)
        usd = round(usage.cost_usd or 0.0, _CENT_PARTS)
        return cls(usd=usd, tokens=usage.tokens, seconds=round(seconds, 3), unpriced=unpriced)

    def plus(self, other: "Spending") -> "Spending":
        """Return the sum of this use and `other`."""
        return Spending(
            usd=round(self.usd + other.usd, _CENT_PARTS),
            tokens=self.tokens + other.tokens,
            seconds=round(self.seconds + other.seconds, 3),
            turns=self.turns + other.turns,
            unpriced=self.unpriced + other.unpriced,
        )

    def since(self, before: "Spending") -> "Spending":
        """Return the increase since `before`, counted as one turn; an amount that has fallen counts as 0."""
        more = Spending(
            usd=round(max(self.usd - before.usd, 0.0), _CENT_PARTS),
            tokens=max(self.tokens - before.tokens, 0),
            seconds=round(max(self.seconds - before.seconds, 0.0), 3),
        )
        if not any(more.amounts.values()):
            return more
        return more.model_copy(update={"turns": 1, "unpriced": int(self.unpriced > before.unpriced)})

    def most(self, other: "Spending") -> "Spending":
        """Return the larger value of each amount."""
        return Spending(
            usd=max(self.usd, other.usd),
            tokens=max(self.tokens, other.tokens),
            seconds=max(self.seconds, other.seconds),
        )

    @property
    def amounts(self) -> dict[str, float]:
        """The amounts by name: `usd`, `tokens`, `seconds`."""
        return {"usd": self.usd, "tokens": self.tokens, "seconds": self.seconds}


class Limit(Wire):
    """The amounts that may be used; an absent amount is not limited."""

    usd: Annotated[float, Field(gt=0)] | None = None
    tokens: Annotated[int, Field(gt=0)] | None = None
    minutes: Annotated[float, Field(gt=0)] | None = None
    daily: bool = False
    """Whether the limit resets at midnight UTC."""

    @property
    def amounts(self) -> dict[str, float]:
        """The limited amounts by name, as in `Spending.amounts`."""
        seconds = None if self.minutes is None else self.minutes * _SECONDS
        amounts = {"usd": self.usd, "tokens": self.tokens, "seconds": seconds}
        return {name: amount for name, amount in amounts.items() if amount is not None}

    def plus(self, other: "Limit") -> "Limit":
        """Return this limit, raised by another limit; an unlimited amount stays unlimited."""
        return Limit(
            usd=None if self.usd is None else round(self.usd + (other.usd or 0.0), _CENT_PARTS),
            tokens=None if self.tokens is None else self.tokens + (other.tokens or 0),
            minutes=None if self.minutes is None else round(self.minutes + (other.minutes or 0.0), _CENT_PARTS),
            daily=self.daily,
        )

    def lowered(self, other: "Limit | None") -> "Limit":
        """Return the lower value of each amount; the result is daily only if both limits are."""
        if other is None:
            return self
        names = ("usd", "tokens", "minutes")
        lowest = {name: lower_of(getattr(self, name), getattr(other, name)) for name in names}
        return Limit.model_validate({**lowest, "daily": self.daily and other.daily})

    def __str__(self) -> str:
        """Return the text that `parse_limit` reads."""
        parts = [] if self.usd is None else [f"{_number(self.usd)}usd"]
        if self.tokens is not None:  # in the largest unit that gives a whole number
            factor, unit = next((each for each in _TOKEN_UNITS if self.tokens % each[0] == 0), (1, "tok"))
            parts.append(f"{self.tokens // factor}{unit}")
        if self.minutes is not None:
            parts.append(f"{_number(self.minutes)}min")
        text = ",".join(parts)
        return f"{text}{_DAILY}" if self.daily else text


Number = TypeVar("Number", int, float)


class BudgetWait(Wire):
    """Why a work order waits for a budget, and the command that ends the wait."""

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
    """Whether real use has reached the limit. If not, running agents have reserved the rest, and the work order
    continues later."""


def lower_of(one: Number | None, other: Number | None) -> Number | None:
    """Return the lower of two amounts; `None` if both are `None`."""
    return min((each for each in (one, other) if each is not None), default=None)


def parse_limit(text: str) -> Limit:
    """Read a limit such as `5usd`, `2Mtok,90min` or `20usd/day`.

    Raises:
        ValueError: The text is no limit; the message names the mistake.
    """
    plain = text.strip().lower()
    amounts: dict[str, float] = {}
    for part in plain.removesuffix(_DAILY).split(","):
        match = _PART.fullmatch(part.strip())
        if match is None or match[2] not in _UNITS:
            raise ValueError(f"must be an amount such as {EXAMPLES}")
        name, factor = _UNITS[match[2]]
        if name in amounts or float(match[1]) <= 0:
            message = "names an amount twice" if name in amounts else "has an amount of 0: leave it out instead"
            raise ValueError(message)
        amounts[name] = float(match[1]) * factor
        if amounts[name] > _MOST:
            raise ValueError("has too large an amount")
    tokens = amounts.get("tokens")
    if tokens is not None and tokens < 1:
        raise ValueError("has less than one token")
    return Limit(
        usd=amounts.get("usd"),
        tokens=None if tokens is None else int(tokens),
        minutes=amounts.get("minutes"),
        daily=plain.endswith(_DAILY),
    )


def _check(text: str) -> str:
    return str(parse_limit(text))


def _check_or_none(text: str) -> str:
    return NO_LIMIT if text.strip().lower() == NO_LIMIT else _check(text)


BudgetText = Annotated[str, StringConstraints(max_length=100), AfterValidator(_check)]
"""A limit, such as `5usd` or `2Mtok,90min`."""
LimitText = Annotated[str, StringConstraints(max_length=100), AfterValidator(_check_or_none)]
"""A limit, or `none`."""


def amount_to_add(limit: Limit, use: Spending) -> str:
    """Return the text of an amount to add to a limit, in the units that are used up.

    If no unit is used up, the text has all units of the limit. The amount is large enough that the raised limit is
    above the use.
    """
    used = {"usd": use.usd, "tokens": use.tokens, "minutes": use.seconds / _SECONDS}
    own = {name: most for name in used if (most := getattr(limit, name)) is not None}
    spent = {name: most * int(used[name] // most) for name, most in own.items() if used[name] >= most}
    return str(Limit.model_validate(spent or own))


def usd_text(usd: float) -> str:
    """Return dollars with two decimals, or an amount below a cent with two significant digits."""
    digits = min(1 - math.floor(math.log10(usd)), _CENT_PARTS) if 0 < usd < _CENT else 2
    return f"{usd:.{digits}f}"


def describe_spending(use: Spending, limit: Limit) -> str:
    """Return how much of a limit is used, in the limit's units and decimals: `4.10 of 5.00 USD`."""
    parts = []
    if limit.usd is not None:
        digits = max(_decimals(limit.usd), 2)
        used = usd_text(use.usd) if use.usd < _CENT else f"{use.usd:.{digits}f}"
        parts.append(f"{used} of {limit.usd:.{digits}f} USD")
    if limit.tokens is not None:
        parts.append(f"{use.tokens:,} of {limit.tokens:,} tokens")
    if limit.minutes is not None:
        digits = max(_decimals(limit.minutes), 1)
        parts.append(f"{use.seconds / _SECONDS:.{digits}f} of {_number(limit.minutes)} minutes")
    return ", ".join(parts)


def _decimals(amount: float) -> int:
    return len(_number(amount).partition(".")[2])


def _number(amount: float) -> str:
    """Return an amount as text that `parse_limit` reads, without the digits that sums of floats add."""
    return f"{amount:.{_CENT_PARTS}f}".rstrip("0").rstrip(".")
