"""The spans of activities, as a collector gets them from a worker."""

from pathlib import Path
from typing import Any

import pytest
import structlog
from fakes.opened_workspace import WORKSPACE
from fakes.otlp_collector import CollectedSpan, collector
from fakes.waiting import until
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from septet.contracts.facts import Usage
from septet.contracts.lanes import SessionSummary, SummariseCall
from septet.contracts.names import Step
from septet.contracts.steps import StepCall
from septet.settings import Settings
from septet.system.masking import hide, reveal
from workers.observing.activity_observer import activity_observer
from workers.observing.runtime import observers

KEY = "a-key-that-no-collector-sees"


class Activity(ActivityInboundInterceptor):
    def __init__(self, end: object) -> None:
        self._end = end

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ARG002 -- the SDK's own
        if isinstance(self._end, Exception):
            raise self._end
        return self._end


async def run(end: object, call: object = None, **settings: Any) -> dict[str, Any]:
    """Run an activity with a worker's observers, and return the log context after a failure."""
    following: ActivityInboundInterceptor = Activity(end)
    of_worker = Settings(state_dir=Path("."), **settings)
    following = activity_observer(of_worker).intercept_activity(following)
    for each in observers(of_worker):
        following = each.intercept_activity(following)  # type: ignore[attr-defined]
    given = ExecuteActivityInput(fn=run, args=[call], executor=None, headers={})

    async def as_the_sdk_does() -> dict[str, Any]:
        try:
            await following.execute_activity(given)
        except KeyError:
            return structlog.contextvars.get_contextvars()
        return {}

    known: dict[str, Any] = await ActivityEnvironment().run(as_the_sdk_does)
    return known


async def span_of_failure(**settings: Any) -> CollectedSpan:
    """Return the span of an activity whose error has an agent's words."""
    with collector() as collected:
        with pytest.raises(ApplicationError):
            await run(ApplicationError("Ada Lovelace", type="StepFailed"), traces=collected.url, **settings)
        (span,) = until(lambda: collected.named("RunActivity:unknown"))
    return span


async def test_an_error_in_a_trace_says_why_unless_words_are_sealed(tmp_path: Path) -> None:
    """A span of a failure has the error's words, or only its kind if payloads are sealed."""
    clear = await span_of_failure()
    assert (clear.is_error, "Ada Lovelace" in clear.words) == (True, True)
    sealed = await span_of_failure(seal_keys_file=tmp_path / "keys")
    assert (sealed.is_error, "Ada Lovelace" in sealed.words) == (True, False)
    assert "ApplicationError" in sealed.words


async def test_no_key_of_this_process_is_in_a_trace() -> None:
    """A trace masks a key that the cause of a failure quotes."""
    caused = ApplicationError("the forge is away", type="GitError")
    caused.__cause__ = OSError(f"could not read https://x:{KEY}@github.com/o/r")
    hide([KEY])
    try:
        with collector() as collected:
            with pytest.raises(ApplicationError):
                await run(caused, traces=collected.url)
            (span,) = until(lambda: collected.named("RunActivity:unknown"))
    finally:
        reveal([KEY])
    assert "could not read https://x:***@github.com/o/r" in span.words
    assert KEY not in repr(span)


async def test_what_is_logged_of_a_failure_names_step_agent_and_trace() -> None:
    """The log line after a failure names step, agent and trace."""
    call = StepCall(step=Step.BUILD_PLAN, workspace=WORKSPACE)
    with collector() as collected:
        known = await run(KeyError("a defect"), call, traces=collected.url)
        (span,) = until(lambda: collected.named("RunActivity:unknown"))
    assert known == {"step": "build_plan", "agent": "claude", "trace_id": span.trace_id}
    assert structlog.contextvars.get_contextvars() == {}, "it holds for the task of the activity alone"


async def test_the_summary_of_a_lane_is_the_run_of_an_agent(tmp_path: Path) -> None:
    """The span of a lane's summary has the agent, session and tokens, and belongs to its activity."""
    call = SummariseCall(workspace=WORKSPACE, pipeline="p", session_id="s-1")
    summary = SessionSummary(kept_bytes=80, model="opus", usage=Usage(input_tokens=100, output_tokens=10))
    with collector() as collected:
        await run(summary, call, traces=collected.url)
        (span,) = until(lambda: collected.named("invoke_agent summarise_session"))
        (activity,) = until(lambda: collected.named("RunActivity:unknown"))
    assert (span.parent_id, span.attributes["gen_ai.provider.name"]) == (activity.span_id, "anthropic")
    assert span.attributes["septet.agent"] == "claude"
    assert (span.attributes["gen_ai.conversation.id"], span.attributes["gen_ai.response.model"]) == ("s-1", "opus")
    assert span.attributes["gen_ai.usage.input_tokens"] == 100
