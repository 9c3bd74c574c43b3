from pathlib import Path

import pytest
from fakes.patched_work_order import PatchedWorkOrder, SwappedWorkOrder
from fakes.recorded import PATHS, REPLAY, UnpatchedChangeError, events_of, name_of, replay

ENDS = {
    "agent-missing": "FAILED",
    "blocked": "FAILED",
    "cancel-delivered": "CANCELED",
    "cancelled": "CANCELED",
    "cancelled-on-a-silent-host": "CANCELED",
    "cancelled-without-worker": "CANCELED",
    "collected": "CANCELED",
    "failed-again": "FAILED",
    "given-up": "CANCELED",
    "host-given-up-twice": "CANCELED",
    "invalid-input": "FAILED",
    "no-plan": "FAILED",
    "refused": "FAILED",
    "waits-for-host": "CANCELED",
}
"""The ends of the work orders that are not completed."""

SEVERAL = {"completed", "refused", "retried", "cancelled"}

EVERY = sorted(REPLAY.glob("*/*/*.json"))
"""The histories of work orders, and of all other workflows."""

each_history = pytest.mark.parametrize("path", PATHS, ids=name_of)


@pytest.mark.parametrize("path", EVERY, ids=lambda path: f"{path.parent.parent.name}/{name_of(path)}")
async def test_every_recorded_history_replays(path: Path) -> None:
    """A workflow that began under an earlier version continues under this one: same commands, same order."""
    await replay(path)


@each_history
def test_every_recorded_history_ends_as_its_name_says(path: Path) -> None:
    """A history is whole: its last event is the end of a work order."""
    kind = str(events_of(path)[-1]["eventType"]).removeprefix("EVENT_TYPE_WORKFLOW_EXECUTION_")
    assert kind == ENDS.get(path.stem, "COMPLETED")


def test_every_history_lies_in_the_folder_of_the_version_that_recorded_it() -> None:
    """A history in another folder would not be replayed."""
    assert sorted(REPLAY.rglob("*.json")) == EVERY


def test_the_retried_work_order_was_reset() -> None:
    """A retry's history has the steps of the earlier run, and the point of the reset."""
    for path in (path for path in PATHS if path.stem in {"retried", "given-up", "reworked"}):
        causes = [event.get("workflowTaskFailedEventAttributes", {}) for event in events_of(path)]
        assert "WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW" in {cause.get("cause") for cause in causes}


@pytest.mark.parametrize("path", [path for path in PATHS if path.stem in SEVERAL], ids=name_of)
async def test_a_change_of_the_order_of_steps_fails_and_says_what_to_do(path: Path) -> None:
    """The replay finds two steps that are swapped without a patch, and the message names the patch and the recorder."""
    with pytest.raises(UnpatchedChangeError) as found:
        await replay(path, SwappedWorkOrder)
    told = str(found.value)
    assert path.parent.name in told
    assert "workflow.patched(" in told
    assert "make histories" in told


@each_history
async def test_the_same_change_behind_a_patch_replays(path: Path) -> None:
    """With two steps swapped behind a patch, each running work order keeps its order of steps."""
    await replay(path, PatchedWorkOrder)
