"""What the attackers' tests share."""

from collections.abc import Iterator

import pytest
from fakes.guests import CANARY, Machine, machine_with_canaries

from septet.agents.sandbox.supervisors import Supervisors
from septet.system.masking import reveal


@pytest.fixture(autouse=True)
def _canary_in_sight() -> Iterator[None]:
    """Let no test mask the canary for those that come after it: a canary in a login's file is masked as a key is."""
    reveal([CANARY])
    yield
    reveal([CANARY])


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine with canaries, for all routes: none of them leaves anything."""
    supervisors = Supervisors()
    with machine_with_canaries(tmp_path_factory.mktemp("machine"), supervisors) as machine:
        yield machine
    supervisors.close()
