"""Record metrics about the results of steps."""

from septet.contracts.facts import Usage
from septet.contracts.lanes import SessionSummary, SummariseCall
from septet.contracts.names import Verdict
from septet.contracts.steps import EndCall, FinalizeCall, StepCall, StepResult
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
    """Record the result of a try of a step.

    If the answer was not read, the verdict on the step is recorded later, with the finalizer's result.
    """
    step, agent = call.name, result.agent
    if is_settled(result):
        _record_verdict(step, result, recorder)
    if result.recovered_by:
        recorder.record(RECOVERIES, step=step, agent=agent, recovered_by=result.recovered_by)
    _record_since(call, result, None, recorder)


def record_finalizer(finalizing: FinalizeCall, result: StepResult, recorder: Recorder = RECORDER) -> None:
    """Record a finalizer's tokens and time, and the step's verdict unless another finalizer follows."""
    earlier, step, agent = earlier_of(finalizing), finalizing.call.name, result.agent
    if starts_since(result, earlier):
        recorder.record(FINALIZER_RUNS, step=step, agent=agent, outcome=result.verdict)
    if is_settled(result):
        _record_verdict(step, result, recorder)
    if result.recovered_by == "finalizer" and not finalizing.call.settles:
        recorder.record(RECOVERIES, step=step, agent=agent, recovered_by="finalizer")
    _record_since(finalizing.call, result, earlier, recorder)


def record_end(ending: EndCall, result: StepResult, recorder: Recorder = RECORDER) -> None:
    """Record the end of a cancelled step, without what its activities have recorded before."""
    earlier = earlier_of(ending)
    if ending.earlier is None or not is_settled(ending.earlier) or starts_since(result, earlier):
        _record_verdict(ending.name, result, recorder)
    _record_since(ending, result, earlier, recorder)


def record_summary(call: SummariseCall, summary: SessionSummary, recorder: Recorder = RECORDER) -> None:
    """Record the tokens and the cost of a lane's summary, which has no verdict."""
    if summary.usage != Usage():
        agent = call.workspace.agent
        recorder.record(AGENT_STARTS, step=call.name, agent=agent)
        _record_use(call, agent, summary.model, summary.usage, recorder)


def is_settled(result: StepResult) -> bool:
    """Return whether a result is the last result of its try.

    Another result follows after an unread answer, after a wait for the reader, or after a wait for a budget that
    running agents have reserved.
    """
    if result.unread:
        return False
    if result.verdict is Verdict.OVER_BUDGET:
        return result.budget_wait is None or result.budget_wait.is_spent
    return result.verdict is not Verdict.UNPARSED or result.checkpoint is None


def _record_verdict(step: str, result: StepResult, recorder: Recorder) -> None:
    recorder.record(STEPS, step=step, agent=result.agent, outcome=result.verdict)
    if result.parsed_by:
        recorder.record(ANSWERS, step=step, agent=result.agent, parsed_by=result.parsed_by)


def earlier_of(call: StepCall | FinalizeCall) -> StepResult | None:
    """Return the summed result of the try's earlier activities; `None` if they started no agents."""
    earlier = (
        call.result if isinstance(call, FinalizeCall) else call.earlier if isinstance(call, EndCall) else None
    )
    return earlier if earlier is not None and earlier.run else None


def starts_since(result: StepResult, earlier: StepResult | None) -> int:
    """Return how many agents were started after an earlier result and up to `result`."""
    if earlier is not None:
        return result.agent_starts - earlier.agent_starts
    return result.agent_starts if result.run else 0


def _record_since(call: StepCall, result: StepResult, earlier: StepResult | None, recorder: Recorder) -> None:
    starts = starts_since(result, earlier)
    if not starts:
        return
    usage, seconds, labels = result.usage, result.duration_seconds, {"step": call.name, "agent": result.agent}
    if earlier is not None:
        usage, seconds = usage_since(usage, earlier.usage), max(seconds - earlier.duration_seconds, 0.0)
    recorder.record(AGENT_STARTS, starts, **labels)
    recorder.record(AGENT_SECONDS, seconds, **labels, model=result.model)
    _record_use(call, result.agent, result.model, usage, recorder)


def _record_use(
    call: StepCall | SummariseCall, agent: str, model: str | None, usage: Usage, recorder: Recorder
) -> None:
    """Record tokens and cost under the same project as budgets and `septet costs`."""
    project = call.project or call.workspace.project
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
    """Return the increase since an earlier usage, at least 0; an unreported cost stays unknown."""
    cost = None if usage.cost_usd is None else max(usage.cost_usd - (earlier.cost_usd or 0.0), 0.0)
    return Usage(
        input_tokens=max(usage.input_tokens - earlier.input_tokens, 0),
        output_tokens=max(usage.output_tokens - earlier.output_tokens, 0),
        cache_read_tokens=max(usage.cache_read_tokens - earlier.cache_read_tokens, 0),
        cache_write_tokens=max(usage.cache_write_tokens - earlier.cache_write_tokens, 0),
        cost_usd=cost,
    )
