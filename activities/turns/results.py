"""Build a step's result, with limited size, from an agent run and git's evidence."""

from typing import Any, Final

from pydantic import BaseModel, JsonValue

from activities.host.claims import Proof
from septet.agents.clis.models import names_another_model
from septet.agents.clis.registry import adapter_for
from septet.agents.runs.folders import Run, Runs, read_archive
from septet.agents.turns.follow import HELD_SECONDS, HELD_TOKENS, HELD_USD
from septet.agents.turns.turn_runs import TurnResult
from septet.answers.ladder import Answer
from septet.contracts.facts import FileChange
from septet.contracts.names import Verdict
from septet.contracts.steps import StepCall, StepFacts, StepResult
from septet.system.masking import mask
from septet.system.text import cut, cut_front

_JSON_LIMIT_BYTES: Final = 4096
_REASONS_SHOWN: Final = 5
_REASON_LENGTH: Final = 1500
_WARNINGS_SHOWN: Final = 10
_WARNING_LENGTH: Final = 200
_HELD: Final = {HELD_USD: "usd", HELD_TOKENS: "tokens", HELD_SECONDS: "seconds"}
_PROMPT_BYTES_A_TOKEN: Final = 4
_STREAM_BYTES_A_TOKEN: Final = 12
"""The estimated bytes of an agent's output stream for each token."""


def begin_result(call: StepCall, turn: TurnResult | None, changes: tuple[FileChange, ...]) -> StepResult:
    """Return a step's result with the facts known so far; its verdict is `failed` until the step is judged."""
    result = StepResult(
        step=call.step,
        verdict=Verdict.FAILED,
        agent=call.workspace.agent,
        files_changed=tuple(change.model_copy(update={"path": change.path[:200]}) for change in changes[:100]),
        files_changed_count=len(changes),
    )
    return _with_turn(result, turn, in_lane=bool(call.pipeline)) if turn is not None else result


def _with_turn(result: StepResult, turn: TurnResult, *, in_lane: bool) -> StepResult:
    outcome, record = turn.outcome, turn.run.record
    return result.model_copy(
        update={
            "agent": (record.agent if record is not None else "") or result.agent,
            "login": record.login if record is not None else "",
            "model": outcome.model,
            "session_id": outcome.session_id,
            "context_tokens": context_of(turn) if in_lane else 0,
            "recovered_by": turn.recovered_by,
            "agent_starts": turn.agent_starts,
            "exit_code": outcome.exit_code,
            "duration_seconds": round(turn.duration_seconds, 3),
            "timestamp": turn.started_at,
            "usage": turn.usage,
            "warnings": _bound_texts((*warnings_of(turn), *outcome.warnings), _WARNINGS_SHOWN, _WARNING_LENGTH),
            "run": turn.run.name,
            "sandbox": record.sandbox if record is not None else "",
        }
    )


def begin_again(unread: StepResult) -> StepResult:
    """Return the facts of a step whose answer was not read; the verdict is `failed` until the next answer."""
    facts = {name: getattr(unread, name) for name in StepFacts.model_fields}
    return StepResult(verdict=Verdict.FAILED, **facts)


def add_turn(result: StepResult, turn: TurnResult | None) -> StepResult:
    """Return the result with the use of one more turn added; `None` adds nothing."""
    if turn is None:
        return result
    used = {
        "agent_starts": result.agent_starts + turn.agent_starts,
        "usage": result.usage.plus(turn.usage),
        "duration_seconds": round(result.duration_seconds + turn.duration_seconds, 3),
    }
    return result.model_copy(update=used)


def with_answer(result: StepResult, answer: Answer[Any]) -> StepResult:
    """Return the result with the checked answer; an answer over 4 KB stays on disk only."""
    value = answer.value
    plain: JsonValue = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    size = len(value.model_dump_json()) if isinstance(value, BaseModel) else 0
    fitting = plain if size <= _JSON_LIMIT_BYTES else None
    return result.model_copy(update={"parsed_by": answer.parsed_by, "result_json": fitting})


def with_proof(result: StepResult, proof: Proof, warnings: tuple[str, ...]) -> StepResult:
    """Return the result as done, with the facts of its proof."""
    return result.model_copy(
        update={
            "verdict": Verdict.DONE,
            "result_text": cut(mask(proof.result_text), 8000),
            "commit_sha": proof.commit_sha,
            "checks_passed": proof.checks_passed,
            "plan_sha256": proof.plan_sha256,
            "plan_bytes": proof.plan_bytes,
            "outline": proof.outline,
            "findings": proof.findings,
            "warnings": (*result.warnings, *_bound_texts(warnings))[:_REASONS_SHOWN],
        }
    )


def with_reasons(result: StepResult, verdict: Verdict, reasons: tuple[str, ...]) -> StepResult:
    """Return the result with a verdict, and the reasons why the step is not done."""
    return result.model_copy(update={"verdict": verdict, "reasons": _bound_texts(reasons)})


def add_warnings(result: StepResult, *warnings: str) -> StepResult:
    """Return the result with more warnings, as many as fit."""
    if not warnings:
        return result
    return result.model_copy(update={"warnings": _bound_texts((*result.warnings, *warnings))})


def _bound_texts(
    texts: tuple[str, ...], count: int = _REASONS_SHOWN, length: int = _REASON_LENGTH
) -> tuple[str, ...]:
    """Return the first `count` texts, masked; long texts lose their front: the end of an output matters most."""
    return tuple(cut_front(mask(text), length) for text in texts[:count])


def warnings_of(result: TurnResult) -> tuple[str, ...]:
    """Return warnings about a turn, such as several agents, budgets without effect, or an unexpected model."""
    workers, record = result.workers, result.run.record
    why = "the model refused" if result.was_refused else "the usage limit was reached"
    changes = (f"{why}: {', then '.join(workers)}",) if len(workers) > 1 else ()
    held = [amount for name, amount in _HELD.items() if record is not None and name in record.limits]
    untold = adapter_for(result.agent).capabilities.untold(held) if held else ""
    asked, told = record.model if record is not None else "", result.outcome.model or ""
    is_another = bool(asked and told) and names_another_model(asked, told)
    return (
        *changes,
        *([f"{result.agent} reports {untold}: no budget limits it. Limit minutes too"] if untold else []),
        *([f"the model {asked} was asked for, and {result.agent} names {told}"] if is_another else []),
    )


def context_of(result: TurnResult) -> int:
    """Return the number of tokens in a run's session: the CLI's figure, or else a high estimate."""
    return result.outcome.context_tokens or _guess_context(result.run, result.outcome.session_id)


def _guess_context(run: Run, session_id: str | None) -> int:
    """Estimate a session's tokens from the prompts and output streams of its runs on disk."""
    folder = run.folder.parent
    runs, archived = Runs(folder.parent).lately(folder.name), read_archive(folder).of(session_id)
    own_runs = [
        each
        for each in runs
        if each.folder == run.folder
        or (session_id and each.record is not None and each.record.session_id == session_id)
    ]
    prompt_bytes = archived.prompt_bytes + sum(each.size_of("prompt.md") for each in own_runs)
    stream_bytes = archived.stream_bytes + sum(each.size_of("stdout.jsonl") for each in own_runs)
    return prompt_bytes // _PROMPT_BYTES_A_TOKEN + stream_bytes // _STREAM_BYTES_A_TOKEN
