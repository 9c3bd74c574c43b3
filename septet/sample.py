"""Make the sample repository of `septet demo`: a bare repository with a commit, a failing test and an issue."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from septet.git.engine.engine import Git

_README = """\
# shop

Prices of orders, in cents.

- `total(quantity, unit_price)` is what an order costs.
- From ten items on, an order is 10 % cheaper.

Run the tests with `python3 -m unittest`.
"""

_CHANGELOG = """\
# Changelog

## Unreleased

- Orders have a total.
"""

_PRICING = '''\
"""What an order costs."""

BULK_QUANTITY = 10
BULK_DISCOUNT_PERCENT = 10


def total(quantity: int, unit_price: int) -> int:
    """Return the price of `quantity` items in cents, with the discount for large orders."""
    if quantity < 0:
        raise ValueError(f"An order cannot have {quantity} items.")
    price = quantity * unit_price
    if quantity > BULK_QUANTITY:
        price -= price * BULK_DISCOUNT_PERCENT // 100
    return price
'''

_TESTS = '''\
"""The prices that customers were promised."""

import unittest

from shop.pricing import total


class Total(unittest.TestCase):
    def test_few_items_have_the_full_price(self) -> None:
        self.assertEqual(total(9, 200), 1800)

    def test_ten_items_get_the_discount(self) -> None:
        self.assertEqual(total(10, 200), 1800)

    def test_many_items_get_the_discount(self) -> None:
        self.assertEqual(total(20, 200), 3600)

    def test_an_order_cannot_be_negative(self) -> None:
        with self.assertRaises(ValueError):
            total(-1, 200)


if __name__ == "__main__":
    unittest.main()
'''

FILES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".gitignore": "__pycache__/\n",
        ".septet/septet.toml": 'checks = ["python3 -m unittest --quiet"]\n',
        "CHANGELOG.md": _CHANGELOG,
        "README.md": _README,
        "shop/__init__.py": '"""A small shop."""\n',
        "shop/pricing.py": _PRICING,
        "tests/__init__.py": "",
        "tests/test_pricing.py": _TESTS,
    }
)
"""The files of the repository by path; one of their tests fails."""

ISSUE_TITLE: Final = "Ten items get no bulk discount"
ISSUE_BODY: Final = """\
The README promises 10 % off from ten items on, but an order of exactly ten items pays the full price:

    >>> from shop.pricing import total
    >>> total(10, 200)
    2000

Expected: 1800. The test `test_ten_items_get_the_discount` fails because of this bug.

In `shop/pricing.py`, `quantity > BULK_QUANTITY` should be `quantity >= BULK_QUANTITY`.
"""


_BRANCH: Final = "main"
_COMMITTER: Final = "Septet Sample <sample@septet.invalid> 1767225600 +0000"
"""The committer and date of the commit; fixed, so that the commit's id is the same everywhere."""

AddIssue = Callable[[Path, str, str], int]
"""A function that adds an issue to a bare repository, by title and body, and returns the issue's number."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A repository on which people can try a work order."""

    origin: Path
    issue: int


def make_sample(to: Path, add_issue: AddIssue, env: Mapping[str, str]) -> Sample:
    """Make the repository `shop.git` in a folder, with an issue about its bug.

    Raises:
        GitError: git failed.
    """
    to.mkdir(parents=True, exist_ok=True)
    origin = to / "shop.git"
    git = Git(origin, env=env)
    git.run("init", "--quiet", "--bare", f"--initial-branch={_BRANCH}")
    git.run("fast-import", "--quiet", stdin=_commit("A shop with a total for every order", FILES))
    return Sample(origin, add_issue(origin, ISSUE_TITLE, ISSUE_BODY))


def _commit(message: str, files: Mapping[str, str]) -> bytes:
    """Return the commands of `git fast-import` for a commit with these files."""
    head = f"commit refs/heads/{_BRANCH}\ncommitter {_COMMITTER}\n".encode()
    contents = [f"M 100644 inline {path}\n".encode() + _data(text) for path, text in files.items()]
    return b"".join([head, _data(message), *contents])


def _data(text: str) -> bytes:
    content = text.encode()
    return b"data %d\n%b\n" % (len(content), content)
