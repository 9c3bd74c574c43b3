"""What a pipeline remembers of an issue that is closed: all of them together fit into one payload.

The rest is on disk: the solution, all files, and the work order's own history.
"""

from collections.abc import Callable
from typing import Any, Final

from pydantic_core import to_json

from septet.contracts.pipeline_view import IssueState
from septet.system.text import cut_line

TITLE_BYTES: Final = 80
MANY: Final = 200
"""With more issues their titles are cut from the beginning."""
_ALL_BYTES: Final = 1_600_000
"""Of all issues as JSON; a Temporal payload holds two million."""
_FEW: Final = 5
_WORDS_BYTES: Final = 160


def shorten_issue(state: IssueState, among: int) -> IssueState:
    """Return as much of a closed issue as there is room for, what is missed least left out first.

    Args:
        state: What is known of it.
        among: How many issues the pipeline has.
    """
    limit_bytes = _ALL_BYTES // among
    for leave_out in _LEFT_OUT:
        if len(to_json(state)) <= limit_bytes:
            break
        state = state.model_copy(update=leave_out(state))
    return state


def _many_files(state: IssueState) -> dict[str, Any]:
    return {"files_modified": state.files_modified[:_FEW]}


def _outline(state: IssueState) -> dict[str, Any]:
    solution = state.solution
    return {"solution": solution.model_copy(update={"tasks": (), "files": ()}) if solution is not None else None}


def _words(state: IssueState) -> dict[str, Any]:
    solution, error, rescue = state.solution, state.error, state.rescue
    values: dict[str, Any] = {"title": cut_line(state.title, TITLE_BYTES), "overlaps": state.overlaps[:_FEW]}
    if solution is not None:
        values["solution"] = solution.model_copy(update={"summary": cut_line(solution.summary, TITLE_BYTES)})
    if error is not None:
        short = {"message": cut_line(error.message, _WORDS_BYTES), "remedy": cut_line(error.remedy, _WORDS_BYTES)}
        values["error"] = error.model_copy(update=short)
    if rescue is not None:  # where its patch lies, its snapshot tells as well
        values["rescue"] = rescue.model_copy(
            update={"reason": cut_line(rescue.reason, TITLE_BYTES), "patch": None}
        )
    return values


def _files_and_sessions(state: IssueState) -> dict[str, Any]:
    path = cut_line(state.plan_path, TITLE_BYTES) if state.plan_path is not None else None
    return {"files_modified": (), "sessions": (), "overlaps": (), "plan_path": path}


def _remedy(state: IssueState) -> dict[str, Any]:
    return {"error": state.error.model_copy(update={"remedy": ""}) if state.error is not None else None}


_LEFT_OUT: Final[tuple[Callable[[IssueState], dict[str, Any]], ...]] = (
    _many_files,
    _outline,
    _words,
    _files_and_sessions,
    _remedy,
)
