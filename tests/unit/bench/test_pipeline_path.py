import pytest

from bench.pipeline import Stretch, critical_path


def test_with_one_executor_and_long_executions_it_is_the_first_plan_and_all_executions() -> None:
    """Plans after the first one take no time of their own, and the executor never waits."""
    stretches = [Stretch(plan=1.5, execution=3.0), Stretch(plan=2.5, execution=3.5), Stretch(1.0, 2.0)]
    assert critical_path(stretches, 1) == pytest.approx(1.5 + 3.0 + 3.5 + 2.0)


def test_with_many_executors_it_is_all_plans_and_the_last_execution() -> None:
    """Each plan is carried out at once, so that only the planner takes time before the last execution."""
    stretches = [Stretch(plan=2.0, execution=3.0)] * 4
    assert critical_path(stretches, 4) == pytest.approx(4 * 2.0 + 3.0)


def test_an_issue_waits_for_its_plan_and_for_an_executor() -> None:
    """With two executors the third issue begins when its plan and one executor are ready."""
    stretches = [Stretch(1.0, 10.0), Stretch(1.0, 2.0), Stretch(1.0, 2.0), Stretch(4.0, 1.0)]
    assert critical_path(stretches, 2) == pytest.approx(11.0)
    assert critical_path(stretches[1:], 2) == pytest.approx(7.0)
