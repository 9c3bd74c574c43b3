"""What an earlier release has begun and left on disk goes on under the code of today: its wheel runs first."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fakes.repositories import Origin
from fakes.septet_command import Ended, Septet
from fakes.waiting import until

from septet.contracts.names import Step

pytestmark = [pytest.mark.recovery, pytest.mark.law]

NEW_FIELDS: dict[str, object] = {
    "stuck": None,
    "findings": [],
    "budget": None,
    "rework": None,
    "unconfined": "",
    "plan_bytes": None,
}
"""What those releases did not tell of a work order."""
NEW_FIELDS_OF_STEPS = {"login": ""}
"""And of each of its steps."""
ONCE = [f"{step.number}-{step.value}-1" for step in Step]
*OLDER, LAST = sorted((Path(__file__).parents[1] / "data" / "releases").glob("*.whl"))
WHEELS = [*(pytest.param(wheel, marks=pytest.mark.release) for wheel in OLDER), LAST]


class Earlier:
    """The commands of an earlier release, on the same machine as those of today."""

    def __init__(self, septet: Septet, packages: Path) -> None:
        self._today = septet
        self.python_path = str(packages)
        self._septet = Septet(septet.root, {"PYTHONPATH": self.python_path})

    def __call__(self, *args: str | Path) -> Ended:
        return self._septet.run_program("septet", *args)

    @property
    def version(self) -> str:
        """Its version, as it says itself."""
        return self("--version").out.split()[-1]

    def start(self, origin: Origin, order: str, scenario: dict[str, Any], *options: str) -> None:
        """Start a work order with a scenario of its own."""
        self._today.scenario(order, scenario)
        ended = self("run", "--repo", origin.bare, "--title", "Say goodbye", "--id", order, *options, "--json")
        assert ended.json["task"]["id"] == order, ended


def current_build(septet: Septet) -> str:
    """Return the build that gets new work orders."""
    answer = septet.temporal("worker", "deployment", "describe", "--name", "septet", "-o", "json").out
    build: str = json.loads(answer)["routingConfig"]["currentVersionBuildID"]
    return build


@pytest.fixture(params=WHEELS, ids=lambda wheel: wheel.name.split("-")[1])
def earlier(request: pytest.FixtureRequest, septet: Septet, tmp_path: Path) -> Earlier:
    """An earlier release, unpacked."""
    packages = tmp_path / "release"
    with zipfile.ZipFile(request.param) as wheel:
        wheel.extractall(packages)
    return Earlier(septet, packages)


@pytest.mark.long
def test_a_state_directory_of_an_earlier_release_goes_on(
    septet: Septet, origin: Origin, earlier: Earlier, tmp_path: Path
) -> None:
    """Its living agent is adopted, its failed work order is retried, its rescues restore, and its records are shown."""
    gate = tmp_path / "gate"
    with septet.up(PYTHONPATH=earlier.python_path) as before:
        assert current_build(septet).startswith(earlier.version)
        earlier.start(origin, "wo-done", {}, "--wait")
        refusal = {
            "steps": {"implement_plan": [{"refuse": "It cannot be done."}, {"refuse": "It cannot be done."}, {}]}
        }
        earlier.start(origin, "wo-failed", refusal, "--wait")
        half = {"steps": {"implement_plan": [{"edits": {"half.txt": "half done\n"}, "hang": True}]}}
        earlier.start(origin, "wo-cancelled", half)
        until((septet.state / "workspaces" / "wo-cancelled" / "half.txt").exists)
        assert earlier("cancel", "wo-cancelled", "--json").code == 0
        cancelled = septet.closed("wo-cancelled")
        earlier.start(origin, "wo-living", {"steps": {"implement_plan": {"wait_for": str(gate)}}})
        septet.until_works("wo-living", "5-implement_plan-1")
        shown = earlier("show", "wo-done", "--json").json["task"]
        before.kill()
        with septet.up():
            gate.touch()
            living = septet.closed("wo-living")
            assert living["status"] == "completed", living["error"]
            assert {row["step"]: row["recovered_by"] for row in living["steps"]}["implement_plan"] in {
                "adopt",
                "read",
            }
            assert septet.runs("wo-living") == ONCE

            steps = [row | NEW_FIELDS_OF_STEPS for row in shown["steps"]]
            assert septet("show", "wo-done", "--json").json["task"] == shown | NEW_FIELDS | {"steps": steps}
            assert septet("logs", "wo-done", "--json").json["log_entries"]
            assert septet("retry", "wo-failed", "--json").code == 0
            assert septet.closed("wo-failed")["status"] == "completed"

            (rescue, *_) = cancelled["rescues"]
            back = tmp_path / "back"
            assert septet("rescue", "restore", rescue["snapshot"], "--to", back, "--json").code == 0
            assert (back / "half.txt").read_text() == "half done\n"
            after = septet(
                "run", "--repo", origin.bare, "--title", "Once more", "--id", "wo-after", "--wait", "--json"
            )
            assert after.json["task"]["status"] == "completed"
