"""With `--maxschedchunk=1`, one process takes all tests of a file whose tests share a fixture, and makes it once."""

import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

_SHARES: Final = re.compile(r'scope="module"|: (?:Browser|Page|Tools)\b')
"""A fixture of a file, or a browser or a client of the tools, which a file has once."""


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives out the files that share, and then all other tests, each alone."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if _shares(self.config.rootpath / file) else nodeid

    def _reschedule(self, node: Any) -> None:
        """Give a process more work only once it has begun its last test, so that others wait for none of its work."""
        if self._pending_of(self.assigned_work[node]) < 2 or not self.workqueue:
            super()._reschedule(node)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    return ByFile(config, log) if config.getoption("maxschedchunk") == 1 else None


@cache
def _shares(file: Path) -> bool:
    return _SHARES.search(file.read_text(encoding="utf-8")) is not None
