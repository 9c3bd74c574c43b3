"""From a step's result to the values that are recorded of it."""

from septet.contracts.facts import Usage
from septet.contracts.lanes import SessionSummary, SummariseCall
from septet.contracts.names import Verdict
from septet.contracts.steps import FinalizeCall, StepCall, StepResult
from septet.contracts.workspace import Workspace
from septet.telemetry.metrics import (
    AGENT_SECONDS,
    AGENT_STARTS,
    ANSWERS,
    COST,
    FINALIZER_RUNS,
    RECOVERIES,
    STEPS,
    TOKENS,
)
from septet.telemetry.recorder import RECORDER, Recorder


def record_step(call: StepCall, result: StepResult, recorder: Recorder = RECORDER) -> None:
    """Record what an attempt at a step has come to.

    An answer that was not read has no verdict yet: its finalizer gives it one.
    """
    step, agent = call.name, result.agent
    if is_settled(result):
        _record_verdict(step, result, recorder)
    if result.recovered_by:
        recorder.record(RECOVERIES, step=step, agent=agent, recovered_by=result.recovered_by)
    if result.run:
        recorder.record(AGENT_STARTS, result.agent_starts, step=step, agent=agent)
        _record_seconds(step, result, result.duration_seconds, recorder)
        _record_use(call.workspace, agent, result.model, result.usage, recorder)


def record_finalizer(finalizing: FinalizeCall, result: StepResult, recorder: Recorder = RECORDER) -> None:
    """Record what a finalizer has come to: its own tokens and time, and the step's verdict where it gives one."""
    first, step, agent = finalizing.result, finalizing.call.name, result.agent
    recorder.record(FINALIZER_RUNS, step=step, agent=agent, outcome=result.verdict)
    recorder.record(AGENT_STARTS, step=step, agent=agent)
    if is_settled(result):
        _record_verdict(step, result, recorder)
    if result.recovered_by == "finalizer":
        recorder.record(RECOVERIES, step=step, agent=agent, recovered_by="finalizer")
    _record_seconds(step, result, result.duration_seconds - first.duration_seconds, recorder)
    _record_use(finalizing.call.workspace, agent, result.model, usage_since(result.usage, first.usage), recorder)


def record_summary(call: SummariseCall, summary: SessionSummary, recorder: Recorder = RECORDER) -> None:
    """Record what the question for a lane's summary has used; it is no attempt at a step, and has no verdict."""
    if summary.usage != Usage():
        agent = call.workspace.agent
        recorder.record(AGENT_STARTS, step=call.name, agent=agent)
        _record_use(call.workspace, agent, summary.model, summary.usage, recorder)


def is_settled(result: StepResult) -> bool:
    """Say whether a result is its try's last word.

    It is not where an unread answer with a checkpoint waits for a finalizer, or where a step waits until running
    agents free the rest of a budget.
    """
    if result.verdict is Verdict.OVER_BUDGET:
        return result.budget_wait is None or result.budget_wait.is_spent
    return result.verdict is not Verdict.UNPARSED or result.checkpoint is None


def _record_verdict(step: str, result: StepResult, recorder: Recorder) -> None:
    recorder.record(STEPS, step=step, agent=result.agent, outcome=result.verdict)
    if result.parsed_by:
        recorder.record(ANSWERS, step=step, agent=result.agent, parsed_by=result.parsed_by)


def _record_seconds(step: str, result: StepResult, seconds: float, recorder: Recorder) -> None:
    recorder.record(AGENT_SECONDS, max(seconds, 0.0), step=step, agent=result.agent, model=result.model)


def _record_use(workspace: Workspace, agent: str, model: str | None, usage: Usage, recorder: Recorder) -> None:
    project = workspace.project
    tokens = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
    }
    for kind, count in tokens.items():
        if count > 0:
            recorder.record(TOKENS, count, agent=agent, model=model, project=project, type=kind)
    if usage.cost_usd is not None:
        recorder.record(COST, max(usage.cost_usd, 0.0), agent=agent, model=model, project=project)


def usage_since(usage: Usage, earlier: Usage) -> Usage:
    """Return what was used since; a cost that was not told is not known."""
    cost = None if usage.cost_usd is None else usage.cost_usd - (earlier.cost_usd or 0.0)
    return Usage(
        input_tokens=usage.input_tokens - earlier.input_tokens,
        output_tokens=usage.output_tokens - earlier.output_tokens,
        cache_read_tokens=usage.cache_read_tokens - earlier.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens - earlier.cache_write_tokens,
        cost_usd=cost,
    )
