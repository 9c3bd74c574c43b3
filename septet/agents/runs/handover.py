"""Pass a lane on: archive the runs of the work orders that have left, so that no step reads the runs again."""

from septet.agents.runs.folders import Run, Runs
from septet.agents.runs.records import ArchivedRuns, InSession, read_archive, write_archive
from septet.agents.runs.usage import read_usage


def pass_on(runs: Runs, lane: str) -> None:
    """Archive the ended runs of a lane; the caller holds the writer's lock, so no run is about to begin.

    A run without a recorded end is not archived until the run is finalized.

    Raises:
        OSError: The disk refused; nothing has changed.
    """
    over = [run for run in runs.lately(lane) if not run.has_started or run.exit() is not None]
    if not over:
        return
    archived = read_archive(runs.folder_of(lane))
    serials = [run.record.serial for run in over if run.record is not None]
    sessions = dict(archived.sessions)
    for run in over:
        _add(sessions, run)
    names = archived.runs | {run.folder.name for run in over}
    write_archive(
        runs.folder_of(lane), ArchivedRuns(runs=names, serial=max((archived.serial, *serials)), sessions=sessions)
    )


def _add(sessions: dict[str, InSession], run: Run) -> None:
    """Add a run's usage to the session of its usage note, and its size to the session of its start."""
    if (spent := read_usage(run)) is not None and spent.session_id:
        so_far = sessions.get(spent.session_id, InSession())
        model = run.record.model if run.record is not None else so_far.model
        update = {"usage": so_far.usage.plus(spent.usage), "model": model}
        sessions[spent.session_id] = so_far.model_copy(update=update)
    if run.record is not None and run.record.session_id is not None:
        so_far = sessions.get(run.record.session_id, InSession())
        sessions[run.record.session_id] = so_far.model_copy(
            update={
                "prompt_bytes": so_far.prompt_bytes + run.size_of("prompt.md"),
                "stream_bytes": so_far.stream_bytes + run.size_of("stdout.jsonl"),
            }
        )
