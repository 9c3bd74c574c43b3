import json
from pathlib import Path

import pytest
from fakes.septet_command import Septet
from fakes.shared_server import Host

pytestmark = pytest.mark.recovery

HEARD_EACH_SECOND = {"SEPTET_PROBE_SECONDS": "6"}


def current(septet: Septet) -> str:
    """Return the current build according to Temporal's own command line."""
    told = septet.temporal("worker", "deployment", "describe", "--name", "septet", "-o", "json").out
    found: str = json.loads(told)["routingConfig"]["currentVersionBuildID"]
    return found


def test_a_build_of_a_shared_server_gets_work_orders_by_a_command_alone(
    septet: Septet, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The first build serves at once, the next build after `septet promote`, and a ramp gives it a part."""
    with septet.up() as up:
        shared = Host.at(up.address, tmp_path_factory.mktemp("shared"))
        with (
            shared.worker(SEPTET_BUILD_ID="one", **HEARD_EACH_SECOND),
            shared.worker(SEPTET_BUILD_ID="two", **HEARD_EACH_SECOND),
        ):
            refused = shared.septet("promote", "three", "--within", "0.5", "--json")
            assert (refused.code, refused.json["error"]["type"]) == (3, "NotFound")
            assert "one, two" in refused.json["error"]["remedy"]
            checks = {check["name"]: check for check in shared.septet("doctor", "--json").json["checks"]}
            assert checks["workers"]["message"].startswith("The current build one has a worker")
            assert checks["workers"]["message"].endswith("Other builds with workers: two.")
            half = shared.septet("promote", "two", "--ramp", "50", "--address", up.address, "--json").json
            assert half == {"ok": True, "build": "two", "before": "one", "percentage": 50.0, "waiting": []}
            assert (
                shared.septet("promote", "two", "--force").out
                == "Build two gets all work orders; before it was one.\n"
            )
        with shared.worker(SEPTET_BUILD_ID="one", **HEARD_EACH_SECOND):
            stopped = shared.septet("promote", "two", "--within", "3", "--json")
            assert (stopped.code, stopped.json["error"]["type"]) == (3, "NotFound")


def test_a_build_whose_worker_was_killed_is_not_promoted(served: Septet, tmp_path: Path) -> None:
    """The server still lists the worker and its last poll, but hears nothing new from it."""
    host = Host.beside(served, tmp_path)
    with (
        host.worker(SEPTET_BUILD_ID="one", **HEARD_EACH_SECOND),
        host.septet.beside("worker", SEPTET_BUILD_ID="two", **HEARD_EACH_SECOND) as two,
    ):
        assert host.septet("promote", "two", "--ramp", "10", "--json").code == 0
        two.kill()
        killed = host.septet("promote", "two", "--within", "5", "--json")
        assert (killed.code, killed.json["error"]["type"]) == (3, "NotFound")
        assert killed.json["error"]["remedy"].endswith("Builds with workers: one.")
        assert host.septet("promote", "one", "--json").code == 0
