"""Fixtures of the attackers' tests."""

from collections.abc import Iterator

import pytest
from fakes.guests import CANARY, Machine, machine_with_canaries

from septet.agents.sandbox.supervisors import Supervisors
from septet.system.masking import reveal


@pytest.fixture(autouse=True)
def _canary_in_sight() -> Iterator[None]:
    """Reveal the canary around each test: a canary in a login's file is masked like a key."""
    reveal([CANARY])
    yield
    reveal([CANARY])


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Yield a machine with canaries that all routes share, for a route leaves no change."""
    supervisors = Supervisors()
    with machine_with_canaries(tmp_path_factory.mktemp("machine"), supervisors) as machine:
        yield machine
    supervisors.close()
