from dataclasses import replace

import pytest

from bench.chaos.pipelines.trial import USUAL, tried

pytestmark = pytest.mark.law


@pytest.mark.long
@pytest.mark.recovery
@pytest.mark.release
@pytest.mark.timeout(400)
async def test_under_a_hand_that_kills_a_pipeline_delivers_each_issue_once_and_its_report_is_whole() -> None:
    """Agents die at work and while they wait, workers and the server at any moment; each law holds."""
    trial = await tried(replace(USUAL, runs=3, seed=6, step_seconds=0.3, every_seconds=1.0))
    assert trial.broken == ()
    assert trial.seen.kills
    assert all(each.completed for each in trial.seen.delivered)
    assert {(life.order, life.step) for life in trial.seen.lives} >= {
        (trial.seen.orders[-1], "create_pull_request")
    }
