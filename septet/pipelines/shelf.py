"""A pipeline's folder on its host's disk: solutions, executions, summaries and how issues stand; all durable."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pydantic import ValidationError

from septet.contracts.pipeline import ISSUE_ID, PIPELINE_ID
from septet.contracts.pipeline_view import IssueState
from septet.contracts.solution import ExecutionRecord, SolutionAnswer
from septet.contracts.wire import Wire
from septet.errors import InvalidInputError
from septet.git.snapshots.durable import write_durably
from septet.state import StateDir

_PIPELINE: Final = re.compile(PIPELINE_ID)
_ISSUE: Final = re.compile(ISSUE_ID)
_LANE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")

W = TypeVar("W", bound=Wire)


def issue_of(pipeline: str, order_id: str) -> str:
    """Return the issue of a pipeline's work order: its id is the pipeline's, a hyphen and the issue's."""
    return order_id.removeprefix(f"{pipeline}-")


@dataclass(frozen=True, slots=True)
class Shelf:
    """`STATE/pipelines/<pipeline>`."""

    folder: Path

    def solution(self, issue_id: str) -> SolutionAnswer | None:
        """Return the accepted solution of an issue; `None` where none lies here."""
        return _read(self._solution_file(issue_id), SolutionAnswer)

    def solution_text(self, issue_id: str) -> bytes | None:
        """Return the accepted solution of an issue as it lies there, as JSON; `None` where none does."""
        try:
            return self._solution_file(issue_id).read_bytes()
        except FileNotFoundError:
            return None

    def keep_solution(self, issue_id: str, solution: SolutionAnswer) -> None:
        """Put an accepted solution there, in the place of an earlier one."""
        _write(self._solution_file(issue_id), solution)

    def execution(self, issue_id: str) -> ExecutionRecord | None:
        """Return what was carried out for an issue; `None` where nothing is known of it here."""
        return _read(self._execution_file(issue_id), ExecutionRecord)

    def keep_execution(self, issue_id: str, record: ExecutionRecord) -> None:
        """Put down what was carried out, in the place of an earlier try."""
        _write(self._execution_file(issue_id), record)

    def keep_state(self, state: IssueState) -> None:
        """Put down what is known of an issue now."""
        _write(self.folder / "issues" / f"{state.position:05}-{_checked(_ISSUE, state.issue_id)}.json", state)

    def states(self) -> tuple[IssueState, ...]:
        """Return what is known of all issues, in the order of the pipeline."""
        found = (_read(path, IssueState) for path in sorted((self.folder / "issues").glob("[0-9]*.json")))
        return tuple(state for state in found if state is not None)

    def summary(self, lane: str) -> str:
        """Return the summary of a lane's sessions before; nothing where none lies here."""
        try:
            return self._summary_file(lane).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def keep_summary(self, lane: str, summary: str) -> None:
        """Put a summary there, in the place of an earlier one."""
        path = self._summary_file(lane)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_durably(path, summary.encode())

    def _summary_file(self, lane: str) -> Path:
        return self.folder / "summaries" / f"{_checked(_LANE, lane)}.md"

    def _solution_file(self, issue_id: str) -> Path:
        return self.folder / "solutions" / f"{_checked(_ISSUE, issue_id)}.json"

    def _execution_file(self, issue_id: str) -> Path:
        return self.folder / "executions" / f"{_checked(_ISSUE, issue_id)}.json"


def shelf_of(state: StateDir, pipeline: str) -> Shelf:
    """Return a pipeline's folder; it is made with the first thing that is put there.

    Raises:
        InvalidInputError: It is no pipeline's id.
    """
    return Shelf(state.pipelines / _checked(_PIPELINE, pipeline))


def _checked(pattern: re.Pattern[str], name: str) -> str:
    """Return a name that is the name of a file at the same time.

    Raises:
        InvalidInputError: It is none.
    """
    if pattern.fullmatch(name) is None or name in {".", ".."}:
        raise InvalidInputError(
            f"{name!r} is no id of a pipeline or of an issue: letters, digits, `.`, `_` and `-`."
        )
    return name


def _write(path: Path, value: Wire) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_durably(path, value.model_dump_json(indent=2).encode(errors="replace"))


def _read(path: Path, form: type[W]) -> W | None:
    """Return what lies in a file; nothing where there is none, or what is there is not ours."""
    try:
        return form.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
