"""From an agent run and what git says to a step's result, of bounded size."""

from typing import Any, Final

from pydantic import BaseModel, JsonValue

from septet.agents.turns.carry_out import TurnResult
from septet.agents.turns.context import context_of
from septet.answers.ladder import Answer
from septet.contracts.facts import FileChange
from septet.contracts.steps import StepCall
from septet.system.text import cut, cut_front

_FILES_SHOWN: Final = 100
_PATH_SHOWN: Final = 200
_JSON_LIMIT_BYTES: Final = 4096
_REASONS_SHOWN: Final = 5
_REASON_LENGTH: Final = 1500
_TEXT_LENGTH: Final = 8000
_WARNINGS_SHOWN: Final = 10
_WARNING_LENGTH: Final = 200


def facts_of(call: StepCall, carried: TurnResult | None, changes: tuple[FileChange, ...]) -> dict[str, Any]:
    """Return what is known of a step whatever its verdict; little, where no agent was started."""
    return {
        "step": call.step,
        "agent": call.workspace.agent,
        "files_changed": tuple(
            change.model_copy(update={"path": change.path[:_PATH_SHOWN]}) for change in changes[:_FILES_SHOWN]
        ),
        "files_changed_count": len(changes),
        **(_facts_of_run(carried) if carried is not None else {}),
        **({"context_tokens": context_of(carried)} if carried is not None and call.pipeline else {}),
    }


def _facts_of_run(carried: TurnResult) -> dict[str, Any]:
    outcome = carried.outcome
    return {
        "model": outcome.model,
        "session_id": outcome.session_id,
        "recovered_by": carried.recovered_by,
        "agent_starts": carried.agent_starts,
        "exit_code": outcome.exit_code,
        "duration_seconds": round(outcome.duration_seconds or 0.0, 3),
        "timestamp": carried.started_at,
        "usage": carried.usage,
        "warnings": bounded(outcome.warnings, _WARNINGS_SHOWN, _WARNING_LENGTH),
        "run": carried.run.name,
        "sandbox": carried.run.record.sandbox if carried.run.record is not None else "",
    }


def answer_json(answer: Answer[Any]) -> JsonValue:
    """Return the checked answer; one over 4 KB is left on disk."""
    value = answer.value
    plain: JsonValue = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    size = len(value.model_dump_json()) if isinstance(value, BaseModel) else 0
    return plain if size <= _JSON_LIMIT_BYTES else None


def bounded(texts: tuple[str, ...], count: int = _REASONS_SHOWN, length: int = _REASON_LENGTH) -> tuple[str, ...]:
    """Return the first texts, each cut to a length: the end of a failing program's output says most."""
    return tuple(cut_front(text, length) for text in texts[:count])


def bounded_text(text: str) -> str:
    """Return a `result_text` that fits."""
    return cut(text, _TEXT_LENGTH)
