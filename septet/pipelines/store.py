"""A pipeline's folder on disk: solutions, executions, summaries and states of issues."""

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, TypeVar

from pydantic_core import from_json

from septet.contracts.solution import ExecutionRecord, SolutionAnswer
from septet.contracts.wire import Wire
from septet.errors import InvalidInputError
from septet.pipelines.inputs import ISSUE_ID, PIPELINE_ID
from septet.pipelines.views import IssueState
from septet.state import StateDir
from septet.system.durable import write_durably

_PIPELINE: Final = re.compile(PIPELINE_ID)
_ISSUE: Final = re.compile(ISSUE_ID)
_LANE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")

_KNOWN_FILES: Final = 4096
"""The most documents in the cache, which saves a second read of an unchanged document."""
_SETTLED_NS: Final = 1_000_000_000
"""How old a file must be, in nanoseconds, to be cached: a younger file may change and keep its time."""

T = TypeVar("T")


def issue_of(pipeline: str, order_id: str) -> str:
    """Return the issue's id in a work order's id, which is `<pipeline>-<issue>`."""
    return order_id.removeprefix(f"{pipeline}-")


@dataclass(frozen=True, slots=True)
class PipelineStore:
    """Reads and writes the folder `pipelines/<pipeline>` of the state directory."""

    folder: Path

    def solution(self, issue_id: str) -> SolutionAnswer | None:
        """Return the accepted solution of an issue; `None` if this host has no solution."""
        return _read(
            self._file("solutions", issue_id), partial(SolutionAnswer.model_validate_json, extra="ignore")
        )

    def solution_json(self, issue_id: str) -> dict[str, object] | None:
        """Return the accepted solution of an issue as unchecked JSON; `None` if this host has no solution."""
        return _read(self._file("solutions", issue_id), from_json)

    def keep_solution(self, issue_id: str, solution: SolutionAnswer) -> None:
        """Write an accepted solution; it replaces an earlier one."""
        _write(self._file("solutions", issue_id), solution)

    def execution(self, issue_id: str) -> ExecutionRecord | None:
        """Return the record of an issue's execution; `None` if this host has no record."""
        return _read(
            self._file("executions", issue_id), partial(ExecutionRecord.model_validate_json, extra="ignore")
        )

    def keep_execution(self, issue_id: str, record: ExecutionRecord) -> None:
        """Write the record of an execution; it replaces an earlier one."""
        _write(self._file("executions", issue_id), record)

    def keep_state(self, state: IssueState) -> None:
        """Write the current state of an issue."""
        _write(f"{self.folder}/issues/{state.position:05}-{_file_name(_ISSUE, state.issue_id)}.json", state)

    def states(self) -> tuple[IssueState, ...]:
        """Return the states of all issues on this disk, in the order of the pipeline."""
        folder = self.folder / "issues"
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            paths = sorted(each.path for each in entries if each.name[0].isdigit())
            read = (_read(path, IssueState.model_validate_json) for path in paths)
            return tuple(state for state in read if state is not None)
        return ()

    def summary(self, lane: str) -> str:
        """Return the summary of a lane's earlier sessions; empty if this host has none."""
        try:
            return self._summary_file(lane).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def keep_summary(self, lane: str, summary: str) -> None:
        """Write a summary; it replaces an earlier one."""
        path = self._summary_file(lane)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_durably(path, summary.encode())

    def _summary_file(self, lane: str) -> Path:
        return self.folder / "summaries" / f"{_file_name(_LANE, lane)}.md"

    def _file(self, folder: str, issue_id: str) -> str:
        return f"{self.folder}/{folder}/{_file_name(_ISSUE, issue_id)}.json"


def store_of(state: StateDir, pipeline: str) -> PipelineStore:
    """Return a pipeline's store; its folder is created by the first write.

    Raises:
        InvalidInputError: The name is no pipeline's id.
    """
    return PipelineStore(state.pipelines / _file_name(_PIPELINE, pipeline))


def _file_name(pattern: re.Pattern[str], name: str) -> str:
    """Return a name that is safe as a file's name; raise `InvalidInputError` for any other name."""
    if pattern.fullmatch(name) is None or name in {".", ".."}:
        message = f"{name!r} is not an id of a pipeline or an issue: use letters, digits, `.`, `_` and `-`."
        raise InvalidInputError(message)
    return name


def _write(name: str, value: Wire) -> None:
    path = Path(name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_durably(path, value.model_dump_json(indent=2).encode(errors="replace"))


def _read(path: str, parse: Callable[[bytes], T]) -> T | None:
    """Return the parsed content of a file; `None` if it is missing or invalid."""
    try:
        facts = os.stat(path)  # noqa: PTH116 -- thousands a second: making a Path takes longer
    except FileNotFoundError:
        return None
    if time.time_ns() - facts.st_mtime_ns < _SETTLED_NS:
        return _parse_file(path, parse)
    return _read_cached(path, parse, (facts.st_ino, facts.st_mtime_ns, facts.st_size))


@lru_cache(maxsize=_KNOWN_FILES)
def _read_cached(path: str, parse: Callable[[bytes], T], _mark: tuple[int, int, int]) -> T | None:
    """Return the parsed content of a file; a replaced file has another `_mark`, and is read again."""
    return _parse_file(path, parse)


def _parse_file(path: str, parse: Callable[[bytes], T]) -> T | None:
    try:
        return parse(Path(path).read_bytes())
    except (FileNotFoundError, ValueError):
        return None
