from pathlib import Path

import pytest
from fakes.prometheus_server import prometheus
from fakes.repositories import Origin
from fakes.septet_command import Septet, free_port, free_ports
from fakes.shared_server import Host
from fakes.waiting import until

pytestmark = [pytest.mark.faces, pytest.mark.release]

ALERTS = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
NEVER_READ = {"malformed": "truncated", "finalizer": {"malformed": "truncated"}}


def test_a_real_prometheus_sees_a_worker_fail_and_get_well(host: Host, origin: Origin, tmp_path: Path) -> None:
    """Alerts fire while a real worker's steps fail and while it is away, and clear when their cause is gone."""
    address = f"127.0.0.1:{free_port()}"
    with prometheus(tmp_path / "prometheus", address, ALERTS, "15s") as watching:
        with host.worker(SEPTET_METRICS=address):
            until(lambda: watching.value('up{job="septet"}') == 1)
            until(lambda: "SeptetWorkerDown" not in watching.firing())
            for number in range(3):
                host.scenario(f"wo-{number}", classify_issue=[NEVER_READ, NEVER_READ])
                host.start(origin, f"wo-{number}")
            until(lambda: "SeptetStepsFail" in watching.firing())
            until(lambda: watching.value("sum(septet_steps_total)") == 6)
            until(lambda: "SeptetStepsFail" not in watching.firing())
            assert "SeptetWorkerDown" not in watching.firing()
        until(lambda: "SeptetWorkerDown" in watching.firing())
        with host.worker(SEPTET_METRICS=address):
            until(lambda: "SeptetWorkerDown" not in watching.firing())


def test_a_real_prometheus_sees_that_the_server_is_away(septet: Septet, tmp_path: Path) -> None:
    """The alert fires while nobody answers an idle worker, and clears when the server is back."""
    address, options = f"127.0.0.1:{free_port()}", ("--port", "--ui-port", "--api-port")
    host = Septet(tmp_path / "host")
    with prometheus(tmp_path / "prometheus", address, ALERTS, "6s") as watching:
        up = ("up", *(part for pair in zip(options, map(str, free_ports(3)), strict=True) for part in pair))
        with (
            septet.serving(*up) as server,
            host.serving("worker", "--address", server.address, SEPTET_METRICS=address),
        ):
            until(lambda: watching.value('up{job="septet"}') == 1)
            assert "SeptetServerRequestsFail" not in watching.firing()
            server.end()
            until(lambda: "SeptetServerRequestsFail" in watching.firing())
            with septet.serving(*up):
                until(lambda: "SeptetServerRequestsFail" not in watching.firing())
