import pytest
from fakes.shared_server import Host

pytestmark = pytest.mark.recovery

HEARD_EACH_SECOND = {"SEPTET_PROBE_SECONDS": "6"}


def test_a_build_of_a_shared_server_gets_work_orders_by_a_command_alone(host: Host) -> None:
    """The first build serves at once, the next build after `septet promote`, and a ramp gives it a part."""
    with (
        host.worker(SEPTET_BUILD_ID="one", **HEARD_EACH_SECOND),
        host.septet.beside("worker", SEPTET_BUILD_ID="two", **HEARD_EACH_SECOND),
    ):
        refused = host.septet("promote", "three", "--within", "0.5", "--json")
        assert (refused.code, refused.json["error"]["type"]) == (3, "NotFound")
        assert "one, two" in refused.json["error"]["remedy"]
        checks = {check["name"]: check for check in host.septet("doctor", "--json").json["checks"]}
        assert checks["workers"]["message"].startswith("The current build one has a worker")
        assert checks["workers"]["message"].endswith("Other builds with workers: two.")
        half = host.septet("promote", "two", "--ramp", "50", "--address", host.address, "--json").json
        assert half == {"ok": True, "build": "two", "before": "one", "percentage": 50.0, "waiting": []}
        promoted = host.septet("promote", "two", "--force")
        assert promoted.out == "Build two gets all work orders; before it was one.\n"


def test_a_build_whose_worker_was_killed_is_not_promoted(host: Host) -> None:
    """The server still lists the worker and its last poll, but hears nothing new from it."""
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
