"""Which work orders may have an agent, without a check of thousands of quiet work orders in each poll."""

import os
from pathlib import Path

from septet.agents.runs.folders import Runs
from workers.recovery.strays import BusyOrders

LONG_AGO_NS = 10**18


def test_a_quiet_work_order_is_asked_again_when_a_run_is_made(tmp_path: Path) -> None:
    """A new folder is looked at each time; in an old folder only a change, such as a new run, is found."""
    runs = Runs(tmp_path)
    orders, folder = BusyOrders(runs), runs.folder_of("wo-1")
    assert orders.find() == []
    lock = runs.lock_writer("wo-1")
    assert lock is not None
    assert orders.find() == ["wo-1"]
    os.close(lock)
    assert orders.find() == []
    os.utime(folder, ns=(LONG_AGO_NS, LONG_AGO_NS))
    assert orders.find() == []
    lock = runs.lock_writer("wo-1")
    assert lock is not None
    assert orders.find() == []
    (folder / "1-classify_issue-1").mkdir()
    assert orders.find() == ["wo-1"]
    os.close(lock)
