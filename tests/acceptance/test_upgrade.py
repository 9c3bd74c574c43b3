import json
from importlib.metadata import version

import pytest
from fakes.repositories import Origin
from fakes.septet_command import Septet

from septet.contracts.names import Step

pytestmark = pytest.mark.recovery

SLOW = {"steps": {"implement_plan": {"delay_seconds": 5}}}


def current(septet: Septet) -> str:
    """Return the build that Temporal's own command line calls current."""
    told = septet.temporal("worker", "deployment", "describe", "--name", "septet", "-o", "json").out
    found: str = json.loads(told)["routingConfig"]["currentVersionBuildID"]
    return found


def test_up_goes_on_after_an_upgrade_with_the_work_orders_under_way(septet: Septet, origin: Origin) -> None:
    """A work order begun under one build is completed by the next `up` under another; no agent runs twice."""
    order = septet.scenario("wo-upgrade", SLOW)
    with septet.up(SEPTET_BUILD_ID="of-yesterday") as first:
        assert septet("run", "--repo", origin.bare, "--title", "T", "--id", order, "--json").code == 0
        septet.until_works(order, "5-implement_plan-1")
        assert current(septet) == "of-yesterday"
        assert first.end() == 0
        with septet.up():
            assert current(septet).startswith(f"{version('septet')}-")
            assert septet.closed(order)["status"] == "completed"
    assert septet.runs(order) == [f"{step.number}-{step.value}-1" for step in Step]
