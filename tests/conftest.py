"""What every test shares: how hard hypothesis tries, which tests start first, small disks, and masks that end."""

import gc
import os
from collections.abc import Iterator

import pytest
from fakes.small_disk import can_mount, dev_full_is_told, runs_elsewhere
from hypothesis import HealthCheck, settings

from septet.system.masking import hidden_values, reveal

pytest_plugins = ["fakes.second_run", "fakes.needs", "fakes.by_file"]

settings.register_profile("default", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

for name in ("COLUMNS", "LINES"):  # the size of the terminal that the tests are run from is none that they ask for
    os.environ.pop(name, None)


@pytest.fixture(autouse=True)
def _masks_end() -> Iterator[None]:
    """Have nothing masked that a test has hidden: each hidden value makes every later mask of the process slower."""
    before = hidden_values()
    yield
    reveal(hidden_values() - before)


gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage from now on, but never among the ten thousand tests, which stay to the end."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start long tests first, so that no process is left alone with one at the end; the others stay in their order."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that mounts disks where it may; where nothing may mount, one refusal of a real device is told."""
    if pyfuncitem.get_closest_marker("small_disk") is None or can_mount():
        return None
    if not runs_elsewhere(pyfuncitem.nodeid, pyfuncitem.config.rootpath):
        dev_full_is_told()
    return True
