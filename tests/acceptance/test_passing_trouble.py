"""A machine that lacks files or disk for a while: work orders wait with the reason, and each step is paid once."""

import time
from pathlib import Path

import psutil
import pytest
from fakes.repositories import Origin, git
from fakes.septet_command import Septet
from fakes.small_disk import small_disk

pytestmark = [pytest.mark.recovery, pytest.mark.law, pytest.mark.timeout(300)]

FEWEST = 8
"""Fewer files than each process has open: the worker can open no further file."""
FULL_SECONDS = 2.5
"""Long enough for the step's end, and for several tries to report it to the server."""


def _host(served: Septet, root: Path, **extra: str) -> Septet:
    own = {"SEPTET_TASK_QUEUE": root.name, "TEMPORAL_ADDRESS": served.address}
    return Septet(root / "host", {**own, **extra}, shares=served)


def _start(host: Septet, origin: Origin, order: str, gate: Path) -> None:
    host.start(origin, order, implement_plan={"wait_for": str(gate)})
    host.until_works(order, "5-implement_plan-1")


def _waits_for(host: Septet, order: str, words: str) -> str:
    """Wait until `show` gives this reason of a work order's wait, and return the full reason."""
    path = f"/agent-work-orders/{order}/detail"
    detail = host.wait_for(path, lambda detail: words in (detail["waiting_for"] or ""), seconds=120)
    return str(detail["waiting_for"])


def test_a_worker_that_may_open_no_further_file_waits(served: Septet, origin: Origin, tmp_path: Path) -> None:
    """An agent that ends meanwhile is not paid again: once files can be opened, the worker reads its answer."""
    host, gate = _host(served, tmp_path), tmp_path / "gate"
    with host.serving("worker") as worker:
        _start(host, origin, "wo-files", gate)
        process = psutil.Process(worker.process.pid)
        soft, hard = process.rlimit(psutil.RLIMIT_NOFILE)
        process.rlimit(psutil.RLIMIT_NOFILE, (FEWEST, hard))
        gate.touch()
        told = _waits_for(host, "wo-files", "no more open files")
        process.rlimit(psutil.RLIMIT_NOFILE, (soft, hard))
        assert "Too many open files" in told
        assert host.closed("wo-files")["status"] == "completed"
        assert [run for run in host.runs("wo-files") if run.startswith("5-")] == ["5-implement_plan-1"]


@pytest.mark.small_disk
def test_what_a_full_disk_has_failed_is_retried_together(served: Septet, origin: Origin, tmp_path: Path) -> None:
    """After the wait, work orders fail; `retry --failed DiskFull` lists them, and with --yes retries only them."""
    host, gate = _host(served, tmp_path, SEPTET_DISK_WAIT_SECONDS="1"), tmp_path / "gate"
    full = ["wo-full-1", "wo-full-2"]
    failed = ("retry", "--failed", "DiskFull", "--repo", str(origin.bare), "--json")
    with small_disk(host.state, mib=64, inodes=20_000) as disk, host.serving("worker"):
        other = host.start(origin, "wo-other", implement_plan={"refuse": "no"})
        assert host.closed(other)["status"] == "failed"
        for order in full:
            _start(host, origin, order, gate)
        disk.fill()
        gate.touch()
        assert [host.closed(order)["error"]["type"] for order in full] == ["DiskFull"] * 2
        disk.free()
        look = host(*failed)
        assert (look.code, look.json["done"]) == (0, False)
        assert sorted(task["id"] for task in look.json["tasks"]) == full
        done = host(*failed, "--yes")
        assert (done.code, done.json["done"], len(done.json["tasks"])) == (0, True, 2)
        assert [host.closed(order)["status"] for order in full] == ["completed"] * 2
        assert host.closed(other)["status"] == "failed"


@pytest.mark.small_disk
def test_a_full_disk_takes_nothing_from_a_work_order(septet: Septet, origin: Origin) -> None:
    """The disk, with the server's database on it, is full as an agent ends; after the repair the work order completes."""
    with small_disk(septet.state, mib=48, inodes=20_000) as disk, septet.up():
        order = septet.start(origin, "wo-1", implement_plan={"delay_seconds": 1})
        septet.until_works(order, "5-implement_plan-1")
        disk.fill()
        time.sleep(FULL_SECONDS)
        disk.free()
        task = septet.closed(order)
        assert (task["status"], task["error"]) == ("completed", None)
        assert git(origin.bare, "log", "-1", "--format=%s", task["branch_name"])
