"""The record of a run at its start, for tests that read none of its values."""

from typing import Final

from septet.agents.runs.records import RunKey, RunRecord

RECORD: Final = RunRecord(
    key=RunKey("wo-1", "run-1", "5"), serial=1, step="implement_plan", agent="claude", because="first", mark="m",
    argv=("claude",), env_names=(), worktree="/w", limits={}, started_at="2025-01-01T00:00:00.000Z", session_id="s",
)  # fmt: skip
