"""After any failure a work order can return to any step, and ends in one pull request with the work."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.going_back import KINDS, world
from fakes.septet_command import Septet

from septet.contracts.names import Step

pytestmark = [pytest.mark.world, pytest.mark.law, pytest.mark.timeout(900)]

HELPS_FROM = {"dco": Step.CREATE_COMMIT, "signing": Step.CREATE_COMMIT, "secret": Step.IMPLEMENT_PLAN}
HELPS_FROM["size"] = Step.IMPLEMENT_PLAN
"""The last step from which a retry makes the refused part anew; for a kind without an entry any step does."""
CELLS = [(kind, step) for kind in KINDS for step in Step]
if os.environ.get("SEPTET_WORLD") == "sample":
    CELLS = [("dco", Step.CREATE_COMMIT), ("secret", Step.CREATE_PULL_REQUEST), ("422", Step.GENERATE_BRANCH)]


def _cell(kind: str, step: Step) -> Any:
    marks = [pytest.mark.small_disk] if kind == "disk full" else []
    return pytest.param(kind, step, id=f"{kind.replace(' ', '_')}-{step.value}", marks=marks)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Septet]:
    """Yield a machine whose server all work orders share."""
    septet = Septet(tmp_path_factory.mktemp("served"))
    with septet.up():
        yield septet


@pytest.mark.parametrize(("kind", "step"), [_cell(*cell) for cell in CELLS])
def test_it_goes_back_to_a_step(served: Septet, tmp_path: Path, kind: str, step: Step) -> None:
    """The retry opens the one pull request, or fails with a remedy that then opens it."""
    order = f"wo-{kind.replace(' ', '-')}-{step.number}"
    with world(served, tmp_path, kind, order) as there:
        failed = there.fail()
        if kind != "host lost":
            assert failed["status"] == ("cancelled" if kind == "cancel" else "failed"), failed
        there.mend()
        task = there.retry("--from", step.value)
        if step.number > HELPS_FROM.get(kind, step).number:
            assert task["status"] == "failed", task
            (remedy,) = re.findall(r"`septet retry ([^`]+)`", task["error"]["remedy"])
            _, *words = shlex.split(remedy)
            task = there.retry(*words)
        there.expect_one_pull_request(task)
        if step.number <= Step.IMPLEMENT_PLAN.number and kind != "host lost":
            there.expect_nothing_lost()
