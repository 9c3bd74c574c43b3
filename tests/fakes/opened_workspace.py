"""An opened workspace for tests that read none of its files."""

from typing import Final

from septet.contracts.workspace import Workspace

WORKSPACE: Final = Workspace(
    work_order_id="wo-1",
    host="h",
    task_queue="q",
    repository="https://github.com/o/r",
    forge="github",
    project="o/r",
    base_branch="main",
    base_sha="0" * 40,
    path="/w",
    agent="claude",
)
