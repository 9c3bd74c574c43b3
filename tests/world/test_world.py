"""Public reports as whole work orders: each case is a folder, and README.md describes how a report becomes a case."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from fakes.compiled_scanner import lend_scanner, shared_scanner
from world.came import Came, differences
from world.case import Case, read_cases
from world.running import world_at

from septet.state import StateDir

pytestmark = [pytest.mark.world, pytest.mark.timeout(900)]
CASES = read_cases()
if os.environ.get("SEPTET_WORLD") == "sample":
    CASES = [case for case in CASES if case.sample]
_AT_ONCE = 16
"""The cases that run at the same time; a case mostly waits."""


@pytest.fixture(scope="session")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Came]]]:
    """Yield the running cases of the selected tests, all on one machine."""
    asked = {item.name.partition("[")[2].rstrip("]") for item in request.session.items}
    cases = [case for case in CASES if case.name in asked]
    scanner = shared_scanner()
    with world_at(
        tmp_path_factory.mktemp("world"), lambda septet: lend_scanner(StateDir(septet.state), scanner)
    ) as world:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield {case.name: pool.submit(world.came_of, case) for case in cases}
            pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_case_comes_out_as_its_file_says(case: Case, runs: dict[str, Future[Came]]) -> None:
    """The outcome meets all expectations; the outcome of a case with `known` has a difference."""
    came = runs[case.name].result()
    found = differences(came)
    if case.known:
        assert found, f"{case.name} comes out right now: remove its `known`, which says: {case.known}"
    else:
        assert not found, "\n".join((f"{case.name}: {case.expects}", *found, came.told()))
