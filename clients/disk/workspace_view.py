"""Read a work order's plan, changes and agents' logs from this host's disk, also while agents run."""

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from clients.disk.agent_logs import AgentLogs
from clients.disk.runs import place_of, started_runs
from clients.tool_calls import EDITS
from septet.agents.clis.registry import ADAPTERS
from septet.agents.turns.follow import StreamReading
from septet.base_checks import result_of
from septet.contracts.host_files import ChangedFile, DiffView, LogEntry, PlanView
from septet.errors import SeptetError
from septet.git.engine.place import find_place, find_record
from septet.git.evidence.difference import difference
from septet.git.worktree.inside import read_inside
from septet.git.worktree.view import view_git
from septet.state import StateDir
from septet.system.masking import scrub

_DIFF_SECONDS: Final = 2.0
_DIFF_SHARE: Final = 5
"""The least pause between two comparisons with the base, as a multiple of the last comparison's duration."""


@dataclass(slots=True)
class WorkspaceView:
    """Reads one work order's plan, changes and agents' logs on this host."""

    state: StateDir
    git_env: Mapping[str, str]
    order_id: str
    _logs: AgentLogs = field(init=False)
    _reading: StreamReading | None = None
    _doing: LogEntry | None = None
    _diff: DiffView | None = None
    _diff_due: float = 0.0

    def __post_init__(self) -> None:
        """Create the reader of the agents' logs; nothing is read yet."""
        self._logs = AgentLogs(self.state, self.order_id)

    def new_entries(self) -> tuple[LogEntry, ...]:
        """Return the log entries since the last call."""
        entries = tuple(self._logs.new_entries())
        self._doing = _call_under_way(self._doing, entries)
        return entries

    @property
    def doing(self) -> LogEntry | None:
        """The agent's tool call that had no result yet when `new_entries` last read the log."""
        return self._doing

    def tokens_of(self, step: str) -> int:
        """Return how many tokens the last agent run has used, if the run belongs to `step`; else 0."""
        run = next(reversed(started_runs(self.state, self.order_id)), None)
        if run is None or run.record is None or run.record.step != step:
            return 0
        if self._reading is None or self._reading.run.folder != run.folder:
            adapter = ADAPTERS.get(run.record.agent)
            self._reading = StreamReading(run, adapter.dialect(), epoch=0) if adapter is not None else None
        if self._reading is None:
            return 0
        self._reading.catch_up()
        return self._reading.dialect.progress.tokens

    def plan(self, path: str | None, limit_bytes: int = 64 * 1024) -> PlanView | None:
        """Return at most `limit_bytes` of the plan; `None` if this host does not have the plan."""
        where = self.state.workspaces / place_of(self.state, self.order_id)
        content = read_inside(where, path, limit_bytes + 1) if path else None
        if not path or content is None:
            return None
        text = content[:limit_bytes].decode("utf-8", "replace")
        return PlanView(path=path, text=scrub(text), whole=len(content) <= limit_bytes)

    def diff(self, *, now: bool = False) -> DiffView | None:
        """Return the changes since the base commit, read at most every few seconds unless `now` is true.

        If the read fails, for example while an agent moves files, the last result is returned again.
        """
        began = time.monotonic()
        if now or began >= self._diff_due:
            with suppress(SeptetError, OSError):
                self._diff = self.difference(256 * 1024)
            end = time.monotonic()
            self._diff_due = end + max(_DIFF_SECONDS, _DIFF_SHARE * (end - began))
        return self._diff

    def difference(self, limit_bytes: int) -> DiffView:
        """Return the current changes since the base commit, with at most `limit_bytes` of the patch.

        Raises:
            SeptetError: This host does not have the workspace, or git failed.
        """
        place = find_place(self.state, place_of(self.state, self.order_id, now=True), self.git_env)
        changes = difference(place, limit_bytes=limit_bytes)
        files = tuple(ChangedFile(path=one.path, added=one.added, removed=one.removed) for one in changes.files)
        return DiffView(files=files, patch=scrub(changes.patch), whole=changes.whole)


def _call_under_way(doing: LogEntry | None, entries: Iterable[LogEntry]) -> LogEntry | None:
    for entry in entries:
        if entry.kind == "tool_call":
            doing = entry
        elif entry.kind != "tool_result" or (
            doing is not None and (entry.tool in {"", doing.tool} or {entry.tool, doing.tool} <= EDITS)
        ):
            doing = None
    return doing


def base_of(state: StateDir, order_id: str) -> str | None:
    """Return the base branch of a work order; `None` if the work order's workspace is not on this host."""
    with suppress(SeptetError):
        record = find_record(state, order_id)
        return record.base_branch if record is not None else None
    return None


def fails_on_base(state: StateDir, order_id: str) -> tuple[str, ...]:
    """Return a line for each check that already fails on the base commit; empty if this host has no results."""
    with suppress(SeptetError, OSError):
        record = find_record(state, place_of(state, order_id))
        result = result_of(state, record.place(state, {})) if record is not None else None
        return tuple(map(scrub, result.lines)) if result is not None else ()
    return ()


@dataclass(frozen=True, slots=True)
class CommitCount:
    """The number of commits and of changed files between a base and a work order's commit."""

    commits: int
    files: int
    """The number of files that differ between the base and the commit."""


def count_commits(state: StateDir, git_env: Mapping[str, str], order_id: str, sha: str) -> CommitCount | None:
    """Count the commits and changed files from the base to `sha`; `None` if this host lacks the workspace."""
    try:
        place = find_place(state, place_of(state, order_id, now=True), git_env)
        git = view_git(place)
        commits = git.text("rev-list", "--count", f"{place.base_sha}..{sha}")
        files = git.run("diff", "--name-only", "-z", place.base_sha, sha)
    except SeptetError:
        return None
    return CommitCount(int(commits), files.count(b"\0"))
