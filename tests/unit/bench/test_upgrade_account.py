"""The upgrade trial's verdict."""

from dataclasses import replace

from bench.upgrade.account import Account

WHOLE = Account(
    orders=2,
    completed=2,
    with_pull_request=2,
    pipelines=1,
    pipelines_completed=1,
    stuck=0,
    starts=14,
    steps=14,
)


def test_a_trial_is_broken_by_what_is_stuck_lost_or_paid_twice_and_by_nothing_else() -> None:
    """Each figure that is wrong is named, and nothing else."""
    assert WHOLE.broken == []
    for change, words in (
        ({"completed": 1}, "1 work orders are not completed"),
        ({"with_pull_request": 1}, "1 work orders have no pull request"),
        ({"pipelines_completed": 0}, "1 pipelines are not completed"),
        ({"stuck": 3}, "3 workflows are stuck"),
        ({"starts": 15}, "15 starts of agents for 14 steps"),
        ({"starts": 13}, "13 starts of agents for 14 steps"),
    ):
        assert replace(WHOLE, **change).broken == [words]
