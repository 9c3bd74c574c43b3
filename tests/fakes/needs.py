"""`@pytest.mark.needs("promtool")`: a skip for a need that `tests/skips.toml` lists; any other skip is an error."""

import os
import platform
import shutil
import socket
import tomllib
from collections import Counter
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from bench.chaos.slow_disk import can_slow_disk
from septet.agents.sandbox.sandbox import find_sandbox

_LIST: Final = "tests/skips.toml"
_MADE_HERE: Final = pytest.StashKey[bool]()
"""Marks a test that was skipped because of a need."""
_SKIPPED: Final = "Skipped: "


@cache
def skips(root: Path) -> dict[str, dict[str, str | list[str]]]:
    """Return the needs: `lacking` in words, the `remedy`, and the `tests` that may be skipped."""
    return tomllib.loads((root / _LIST).read_text(encoding="utf-8"))


def find_browser() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


def _has_ipv6() -> bool:
    with socket.socket(socket.AF_INET6) as listener:
        try:
            listener.bind(("::1", 0))
        except OSError:
            return False
        return True


_CHECKS: Final[dict[str, Callable[[], bool]]] = {
    "bubblewrap": lambda: find_sandbox("auto", os.environ).confines,
    "chromium": lambda: find_browser() is not None,
    "IPv6": _has_ipv6,
    "Linux": lambda: Path("/proc/locks").exists(),
    "root": lambda: os.geteuid() == 0,
    "strace": can_slow_disk,
    "x86-64": lambda: platform.machine() == "x86_64",
}
"""The needs other than a program on PATH."""


@cache
def is_there(need: str) -> bool:
    check = _CHECKS.get(need)
    return shutil.which(need) is not None if check is None else check()


def words_of(need: str, root: Path) -> str:
    return "no {lacking} ({remedy})".format(**skips(root)[need])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nothing-missing", action="store_true", help="a test that would be skipped fails")
    parser.addoption("--has", action="append", default=[], help="a test that would be skipped for this need fails")
    parser.addoption("--but-for", action="append", default=[], help="leave out tests that need this and no more")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a need that is not listed for the test's file, and leave out tests that other worlds run."""
    tried = set(config.getoption("but_for"))
    out = [item for item in items if (needs := set(_needs_of(item))) and needs <= tried]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in set(out)]
    for item in items:
        for need in _needs_of(item):
            root = item.config.rootpath
            file = item.path.relative_to(root).as_posix()
            if file not in skips(root).get(need, {}).get("tests", ()):
                raise pytest.UsageError(f"{item.nodeid} needs {need!r}: {_LIST} does not list {file} there.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    lacking = next((need for need in _needs_of(item) if not is_there(need)), None)
    if lacking is None:
        return
    if item.config.getoption("nothing_missing") or lacking in item.config.getoption("has"):
        pytest.fail(
            f"This machine is to have it, and has {words_of(lacking, item.config.rootpath)}.",
            pytrace=False,
        )
    item.stash[_MADE_HERE] = True
    pytest.skip(words_of(lacking, item.config.rootpath))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and _MADE_HERE not in item.stash:
        _refuse(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        _refuse(report)
    return report


def _refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    report.outcome = "failed"
    report.longrepr = f"{report.longrepr}: a skip that is not a need of {_LIST}."


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    yield
    reports = terminalreporter.stats.get("skipped", ())
    reasons = Counter(str(report.longrepr[2]).removeprefix(_SKIPPED) for report in reports)
    if reasons:
        counted = (f"{number} skipped: {reason}" for reason, number in reasons.most_common())
        terminalreporter.write_line("; ".join(counted), yellow=True)


def _needs_of(item: pytest.Item) -> list[str]:
    return [need for marker in item.iter_markers("needs") for need in marker.args]
