from collections.abc import Mapping

import pytest
from fakes.opened_workspace import WORKSPACE

from septet.contracts.amounts import BudgetWait
from septet.contracts.facts import Usage
from septet.contracts.lanes import SessionSummary, SummariseCall
from septet.contracts.names import Step, Verdict
from septet.contracts.rework import Rework
from septet.contracts.steps import EndCall, FinalizeCall, StepCall, StepResult
from septet.telemetry.metrics import STEPS, Metric
from septet.telemetry.recorder import OTHER, Recorder
from septet.telemetry.step_values import record_end, record_finalizer, record_step, record_summary

CALL = StepCall(step=Step.BUILD_PLAN, workspace=WORKSPACE)
DONE = StepResult(
    step=Step.BUILD_PLAN,
    verdict=Verdict.DONE,
    agent="claude",
    model="opus",
    run="wo-1/2-build_plan-1",
    agent_starts=2,
    parsed_by="fence",
    recovered_by="resume",
    duration_seconds=12.5,
    usage=Usage(input_tokens=10, output_tokens=5, cost_usd=0.25),
    checkpoint="c",
)
UNREAD = DONE.model_copy(update={"verdict": Verdict.UNPARSED, "parsed_by": None, "recovered_by": None})
WITH_FINALIZER = {
    "agent_starts": 3,
    "duration_seconds": 14.0,
    "usage": Usage(input_tokens=13, output_tokens=6, cost_usd=0.5),
}
OF_FINALIZER = {
    "septet_agent_starts build_plan claude": 1,
    "septet_agent_seconds build_plan claude opus": 1.5,
    "septet_tokens claude opus o/r input": 3,
    "septet_tokens claude opus o/r output": 1,
    "septet_cost_usd claude opus o/r": 0.25,
}
"""The values of the finalizer alone, without those of its step."""


class Taken(dict[str, float]):
    """The sums of the values that a recorder gets, by metric and labels."""

    def __init__(self) -> None:
        """Begin with a new recorder."""
        self.recorder = Recorder()
        self.recorder.send_to(self.take)

    def take(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None:
        key = " ".join((metric.name, *labels.values()))
        self[key] = self.get(key, 0) + value


@pytest.fixture
def taken() -> Taken:
    return Taken()


def test_tokens_and_cost_are_those_of_the_project_that_the_work_order_names(taken: Taken) -> None:
    """Tokens and cost count for the project of the work order."""
    record_step(CALL.model_copy(update={"project": "shared"}), DONE, taken.recorder)
    summary = SummariseCall(workspace=WORKSPACE, pipeline="pl-1", session_id="s", project="shared")
    record_summary(summary, SessionSummary(usage=Usage(output_tokens=7)), taken.recorder)
    named = [key for key in taken if key.startswith(("septet_tokens", "septet_cost"))]
    assert named
    assert all(" shared" in key for key in named)


def test_an_answer_that_waits_for_its_finalizer_has_no_verdict_yet(taken: Taken) -> None:
    """A step counts when its finalizer has read the answer, and the finalizer counts only its own usage."""
    record_step(CALL, UNREAD, taken.recorder)
    assert not [key for key in taken if key.startswith("septet_steps")]
    taken.clear()
    told = DONE.model_copy(update={"recovered_by": "finalizer", **WITH_FINALIZER})
    record_finalizer(FinalizeCall(call=CALL, session_id="s", reasons=("r",), result=UNREAD), told, taken.recorder)
    assert taken == OF_FINALIZER | {
        "septet_finalizer_runs build_plan claude done": 1,
        "septet_steps build_plan claude done": 1,
        "septet_answers build_plan claude fence": 1,
        "septet_recoveries build_plan claude finalizer": 1,
    }


def test_a_finalizer_that_no_agent_was_started_for_counts_nothing(taken: Taken) -> None:
    """A finalizer that a budget refused records nothing, and the step still has no verdict."""
    finalizing = FinalizeCall(call=CALL, session_id="s", reasons=("r",), result=UNREAD)
    wait = BudgetWait(scope="day", message="Running agents hold the rest of the budget.", is_spent=False)
    refused = {"verdict": Verdict.OVER_BUDGET, "budget_wait": wait}
    record_finalizer(finalizing, UNREAD.model_copy(update=refused), taken.recorder)
    assert taken == {}


@pytest.mark.parametrize("known", [DONE, UNREAD], ids=["between steps", "before its finalizer"])
def test_the_end_of_a_cancelled_step_counts_what_was_not_told_before(taken: Taken, known: StepResult) -> None:
    """A cancelled step records a verdict only if it had none before."""
    told = known.model_copy(update={"verdict": Verdict.CANCELLED, "recovered_by": None})
    record_end(EndCall.of(CALL, known, ""), told, taken.recorder)
    assert taken == ({} if known is DONE else {"septet_steps build_plan claude cancelled": 1})


def test_the_end_of_a_cancelled_step_counts_the_agent_that_worked_then(taken: Taken) -> None:
    """A cancelled finalizer's agent counts with its start, seconds, tokens and cost, and the step as cancelled."""
    cancelled = UNREAD.model_copy(update={"verdict": Verdict.CANCELLED, **WITH_FINALIZER})
    record_end(EndCall.of(CALL, UNREAD, "finalize_json-1"), cancelled, taken.recorder)
    assert taken == OF_FINALIZER | {"septet_steps build_plan claude cancelled": 1}


def test_an_answer_that_no_finalizer_can_read_is_a_verdict(taken: Taken) -> None:
    """An unparsed answer without a checkpoint is a verdict, since no finalizer can read the answer."""
    record_step(CALL, UNREAD.model_copy(update={"checkpoint": None}), taken.recorder)
    assert taken["septet_steps build_plan claude unparsed"] == 1


def test_a_step_that_no_agent_was_started_for_costs_nothing(taken: Taken) -> None:
    """A step that failed before an agent started records only its verdict."""
    record_step(CALL, StepResult(step=Step.BUILD_PLAN, verdict=Verdict.FAILED, agent="claude"), taken.recorder)
    assert taken == {"septet_steps build_plan claude failed": 1}


def test_a_step_that_waits_for_running_agents_has_stopped_at_no_budget(taken: Taken) -> None:
    """A spent budget counts as a verdict; a budget that running agents hold does not, since it opens again."""
    for is_spent in (True, False):
        wait = BudgetWait(scope="day", message="The budget is used up.", is_spent=is_spent)
        result = StepResult(step=Step.BUILD_PLAN, verdict=Verdict.OVER_BUDGET, agent="claude", budget_wait=wait)
        record_step(CALL, result, taken.recorder)
    assert taken == {"septet_steps build_plan claude over_budget": 1}


def test_a_round_on_a_pull_request_is_recorded_as_rework(taken: Taken) -> None:
    """A round on a pull request counts as `rework`, and so does its finalizer."""
    call = CALL.model_copy(
        update={"step": Step.IMPLEMENT_PLAN, "rework": Rework(round=1, url="https://github.com/o/r/pull/1")}
    )
    result = DONE.model_copy(update={"step": Step.IMPLEMENT_PLAN})
    record_step(call, result, taken.recorder)
    asked = result.model_copy(update={"agent_starts": 3})
    record_finalizer(FinalizeCall(call=call, session_id="s", reasons=("r",), result=result), asked, taken.recorder)
    assert [key for key in taken if "implement_plan" in key] == []
    assert (taken["septet_steps rework claude done"], taken["septet_finalizer_runs rework claude done"]) == (2, 1)


def test_the_summary_of_a_lane_counts_what_it_used(taken: Taken) -> None:
    """A lane's summary records an agent's start, tokens and cost; a summary without an agent records nothing."""
    call = SummariseCall(workspace=CALL.workspace, pipeline="p", session_id="s")
    usage = Usage(input_tokens=100, output_tokens=10, cost_usd=0.5)
    record_summary(call, SessionSummary(kept_bytes=80, model="opus", usage=usage), taken.recorder)
    record_summary(call, SessionSummary(warning="The host was gone."), taken.recorder)
    assert taken == {
        "septet_agent_starts summarise_session claude": 1,
        "septet_tokens claude opus o/r input": 100,
        "septet_tokens claude opus o/r output": 10,
        "septet_cost_usd claude opus o/r": 0.5,
    }


def test_a_push_that_is_read_counts_once(taken: Taken) -> None:
    """A push that waits for its reader has no verdict, and its continuation records the verdict only."""
    waits = DONE.model_copy(update={"verdict": Verdict.UNPROVEN, "unread": "c0de"})
    goes_on = DONE.model_copy(
        update={"agent_starts": 0, "usage": Usage(), "duration_seconds": 0.0, "recovered_by": None}
    )
    record_step(CALL, waits, taken.recorder)
    record_step(CALL.model_copy(update={"settles": "build_plan-1"}), goes_on, taken.recorder)
    assert taken["septet_steps build_plan claude done"] == 1
    assert taken["septet_recoveries build_plan claude resume"] == 1
    assert taken["septet_agent_starts build_plan claude"] == 2
    assert "septet_steps build_plan claude unproven" not in taken


def test_a_label_has_a_hundred_values_and_no_more() -> None:
    """After a hundred values of a label further values count as one other value."""
    recorder, taken = Recorder(), list[Mapping[str, str]]()
    recorder.send_to(lambda *value: taken.append(value[2]))
    for number in range(102):
        recorder.record(STEPS, step="build_plan", outcome="done", agent=f"agent-{number}")
    recorder.record(STEPS, step="build_plan", outcome="done", agent="agent-7")
    recorder.record(STEPS, step="x" * 200, outcome="done", agent=None)
    assert [labels["agent"] for labels in taken[99:]] == ["agent-99", OTHER, OTHER, "agent-7", OTHER]
    assert len(taken[-1]["step"]) == 80
