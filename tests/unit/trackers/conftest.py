"""A Linear on loopback with one delegated issue."""

from collections.abc import Iterator

import pytest
from fakes.trackers.linear import LinearFake, serving_linear

from septet.forges.http.pauses import PAUSES
from septet.trackers.linear.api import LinearApi
from septet.trackers.linear.tracker import LinearTracker


@pytest.fixture
def linear() -> Iterator[LinearFake]:
    with serving_linear(LinearFake()) as fake:
        fake.delegate(fake.add_issue("Totals are wrong", "By one."))
        yield fake
        PAUSES.clear()


@pytest.fixture
def tracker(linear: LinearFake) -> LinearTracker:
    return LinearTracker(LinearApi(linear.token, linear.url))
