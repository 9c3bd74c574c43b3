import signal

import pytest
from fakes.prometheus import scrape
from fakes.repositories import Origin
from fakes.septet_command import Septet, free_port
from fakes.shared_server import Host
from fakes.waiting import until

pytestmark = pytest.mark.faces

MALFORMED = {"steps": {"classify_issue": [{"malformed": "truncated"}]}}


def test_a_worker_serves_the_metrics_of_its_work_orders_and_of_the_sdk(host: Host, origin: Origin) -> None:
    """One address serves steps, starts, tokens, cost and waits under Prometheus names."""
    address = f"127.0.0.1:{free_port()}"
    host.scenario("wo-measured", **MALFORMED["steps"])
    with host.worker(SEPTET_METRICS=address) as worker:
        host.septet("create", "--repo", origin.bare, "--title", "T", "--id", "wo-measured")
        assert host.septet("move", "wo-measured", "triaged").code == 0
        task = host.septet.closed("wo-measured")
        assert task["status"] == "completed"
        until(lambda: scrape(address).total("septet_steps_total", outcome="done") == 7)
        seen = scrape(address)
        assert seen.total("septet_agent_starts_total") == 8
        assert (
            seen.total("septet_tokens_total", type="input", project=task["project"])
            == task["usage"]["input_tokens"]
        )
        assert seen.total("septet_cost_usd_sum") == pytest.approx(task["usage"]["cost_usd"] or 0.0)
        assert seen.total("septet_queue_wait_seconds_count", activity="build_plan") == 1
        assert seen.total("septet_seat_wait_seconds_count") == 1
        assert seen.total("temporal_activity_execution_latency_seconds_count", activity_type="build_plan") == 1
        assert worker.end(signal.SIGTERM) == 0


def test_a_taken_address_is_named_with_its_remedy(served: Septet, septet: Septet) -> None:
    """A worker that cannot serve its metrics does not start, and names the setting to change."""
    server = served.address
    for address in (server, "no address"):
        ended = Septet(septet.root, {"SEPTET_METRICS": address})("worker", "--address", server, "--json")
        assert (ended.code, ended.error["type"]) == (1, "MetricsAddress"), ended
        assert address in ended.error["message"]
        assert "SEPTET_METRICS" in ended.error["remedy"]
    asked = Septet(served.root, {"SEPTET_METRICS": server})("list", "--json")
    assert asked.code == 0, "a command serves no metrics"
