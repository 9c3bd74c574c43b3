import pytest

from bench.pipeline import Stretch, critical_path


def test_with_one_executor_and_long_executions_it_is_the_first_plan_and_all_executions() -> None:
    """The planner is never waited for after the first plan, and the executor never rests."""
    stretches = [Stretch(plan=1.5, execution=3.0), Stretch(plan=2.5, execution=3.5), Stretch(1.0, 2.0)]
    assert critical_path(stretches, 1) == pytest.approx(1.5 + 3.0 + 3.5 + 2.0)


def test_with_many_executors_it_is_all_plans_and_the_last_execution() -> None:
    """Each plan is carried out at once, so that only the planner is waited for."""
    stretches = [Stretch(plan=2.0, execution=3.0)] * 4
    assert critical_path(stretches, 4) == pytest.approx(4 * 2.0 + 3.0)


def test_an_issue_waits_for_its_plan_and_for_an_executor() -> None:
    """With two executors the third issue begins as soon as one of them is free and its plan is there."""
    stretches = [Stretch(1.0, 10.0), Stretch(1.0, 2.0), Stretch(1.0, 2.0), Stretch(4.0, 1.0)]
    assert critical_path(stretches, 2) == pytest.approx(11.0)
    assert critical_path(stretches[1:], 2) == pytest.approx(7.0)
