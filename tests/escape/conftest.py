"""What the attackers' tests share."""

from collections.abc import Iterator

import pytest
from fakes.guests import CANARY

from septet.system.masking import reveal


@pytest.fixture(autouse=True)
def _canary_in_sight() -> Iterator[None]:
    """Let no test mask the canary for those that come after it: a canary in a login's file is masked as a key is."""
    reveal([CANARY])
    yield
    reveal([CANARY])
