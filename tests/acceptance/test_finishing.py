"""Many work orders on one slot: started work orders finish before more work orders begin."""

from pathlib import Path

import pytest
from fakes.repositories import Origin
from fakes.septet_command import Septet
from fakes.waiting import until

pytestmark = [pytest.mark.recovery, pytest.mark.timeout(120)]

ORDERS = 10


def test_the_first_pull_request_comes_before_most_work_orders_begin(
    septet: Septet, origin: Origin, tmp_path: Path
) -> None:
    """Of ten work orders that are queued for one slot, half have not begun when the first opens its pull request."""
    gate, runs = tmp_path / "gate", septet.state / "runs"
    scenario = {"steps": {"classify_issue": {"wait_for": str(gate)}}}
    names = [septet.scenario(f"wo-{number}", scenario) for number in range(ORDERS)]
    with septet.up(SEPTET_MAX_AGENTS="1"):
        for name in names:
            assert septet("run", "--repo", origin.bare, "--title", "T", "--id", name, "--json").code == 0
        for name in names[1:]:
            septet.wait_for_detail(name, lambda detail: "queued since" in (detail["waiting_for"] or ""))
        gate.touch()
        until(lambda: list(runs.glob("*/7-create_pull_request-1")))
        assert len(_begun(runs)) <= ORDERS // 2


def _begun(runs: Path) -> list[Path]:
    return list(runs.glob("*/1-classify_issue-1"))
