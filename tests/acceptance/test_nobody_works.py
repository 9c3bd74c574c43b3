"""The builds that get work, and work without a worker: on a wrong queue, of another build, or all drained."""

import time
from dataclasses import replace
from typing import Any

import pytest
from fakes.repositories import Origin
from fakes.shared_server import Host
from fakes.waiting import until

pytestmark = pytest.mark.recovery

SOON = {"SEPTET_PROBE_SECONDS": "6"}
"""The server hears its workers each second."""
ASKED_FOR = "The cancel is asked for, and is carried out as soon as a worker runs. Nobody works: "
SOON_SECONDS = 5.0
"""The longest time of a `show`, with the command's start, because it queries no absent worker."""
_LOOKS = 3


def waits_for(host: Host, order: str) -> str | None:
    shown = host.septet("show", order, "--json")
    assert shown.code == 0, shown
    waiting: str | None = shown.json["waiting_for"]
    return waiting


def told_soon(host: Host, order: str) -> str:
    """Return `show`'s message of a missing worker, and check that one of three calls is fast, without other load."""
    took = []
    for _ in range(_LOOKS):
        began = time.monotonic()
        waiting = waits_for(host, order)
        took.append(time.monotonic() - began)
        if took[-1] < SOON_SECONDS:
            break
    assert min(took) < SOON_SECONDS, took
    return waiting or ""


def check(host: Host, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {each["name"]: each for each in host.septet("doctor", "--json").json["checks"]}[name]
    return found


def test_a_queue_that_nobody_serves_is_told_and_a_cancel_is_only_asked_for(host: Host, origin: Origin) -> None:
    """`show`, `watch` and `cancel` report it although workers of another queue run; the cancel waits for a worker."""
    other = replace(host, queue=f"{host.queue}-other")
    with host.worker(**SOON):
        assert check(host, "worker here")["message"].startswith("A worker runs with ")
        other.start(origin, "wo-unserved")
        until((host.septet.state / "health.json").exists)
        nobody = told_soon(host, "wo-unserved")
        assert nobody == (
            f"Nobody works: the worker of {host.septet.state} serves queue '{host.queue}', not '{other.queue}'. "
            f"Start another with SEPTET_TASK_QUEUE={other.queue}: septet worker"
        )
        cancelled = host.septet("cancel", "wo-unserved", "--json")
        assert (cancelled.code, cancelled.json["task"]["status"]) == (0, "running"), cancelled
        assert cancelled.json["task"]["stuck"] == f"{ASKED_FOR}{nobody.removeprefix('Nobody works: ')}"
        assert waits_for(host, "wo-unserved") == cancelled.json["task"]["stuck"]
    assert check(host, "worker here")["message"].startswith("No worker runs with ")
    with host.worker(SEPTET_TASK_QUEUE=other.queue):
        assert host.septet.closed("wo-unserved")["status"] == "cancelled"


def test_a_current_build_without_a_worker_is_told(host: Host, origin: Origin) -> None:
    """A build whose last worker has stopped is not promoted; `show` reports it at once, and another build is promoted."""
    with host.worker(SEPTET_BUILD_ID="one", **SOON):
        with host.septet.beside("worker", SEPTET_BUILD_ID="two", **SOON) as two:
            assert host.septet("promote", "two", "--json").json["before"] == "one"
            two.end()
            stopped = host.septet("promote", "two", "--within", "3", "--json")
            assert (stopped.code, stopped.json["error"]["type"]) == (3, "NotFound")
            assert stopped.json["error"]["remedy"].endswith("Builds with workers: one.")
        order = host.start(origin, "wo-two")
        nobody = "Nobody works: the current build two has no worker. Builds with workers: one."
        assert told_soon(host, order) == f"{nobody} Choose one: septet promote BUILD"
        assert check(host, "workers")["message"].startswith("The current build two has no worker")
        assert host.septet("promote", "one", "--json").json["before"] == "two"
        assert host.septet.closed(order)["status"] == "completed"


def test_a_drained_fleet_is_told_and_new_work_waits_for_its_end(host: Host, origin: Origin) -> None:
    """A worker decides for the work order, but none opens its workspace: `show` reports this until a worker does."""
    until_then = "new work waits until a worker of this queue runs without SEPTET_DRAIN."
    drained = f"Every host is drained: {until_then}"
    with host.worker(SEPTET_DRAIN="true", **SOON):
        order = host.start(origin, "wo-drained")
        until(lambda: waits_for(host, order) == drained)
        assert told_soon(host, order) == drained
        with host.septet.beside("worker", **SOON):
            assert host.septet.closed(order)["status"] == "completed"


def test_a_build_of_a_shared_server_gets_work_orders_by_a_command_alone(host: Host) -> None:
    """The first build serves at once, the next build after `septet promote`, and a ramp gives it a part."""
    with (
        host.worker(SEPTET_BUILD_ID="one", **SOON),
        host.septet.beside("worker", SEPTET_BUILD_ID="two", **SOON),
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
