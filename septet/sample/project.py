"""The files of the sample repository, and the issue about its bug."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
"""By path. One of the tests fails."""

ISSUE_TITLE: Final = "Ten items get no bulk discount"
ISSUE_BODY: Final = """\
The README promises 10 % off from ten items on, but an order of exactly ten items pays the full price:

    >>> from shop.pricing import total
    >>> total(10, 200)
    2000

Expected: 1800. The test `test_ten_items_get_the_discount` fails because of this bug.

In `shop/pricing.py`, `quantity > BULK_QUANTITY` should be `quantity >= BULK_QUANTITY`.
"""
