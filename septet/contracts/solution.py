"""What a pipeline's two agents answer: the planner a solution, the executor what became of it."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from septet.contracts.answers import Line, Text
from septet.contracts.wire import StrictWire, Wire

SOLUTION_LIMIT_BYTES = 256 * 1024
"""The most that a solution may hold: it lies on disk, and only its outline goes on to the workflow."""

TaskId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Path = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00-\x1f]+$")]
"""Relative to the repository's root, with `/`."""


class ModificationPoint(StrictWire):
    """One place that a task changes."""

    file: Path
    """The file, relative to the repository's root."""
    change: Text
    """What is to change there: a function, a section, a value."""


class SolutionTask(StrictWire):
    """One piece of the work."""

    id: TaskId
    """Unique in the solution, such as `T1`."""
    title: Line
    """What is done, in a few words."""
    scope: Path
    """The folder or file, inside the repository, that the task stays in."""
    modification_points: Annotated[tuple[ModificationPoint, ...], Field(max_length=200)]
    """Every place that the task changes."""
    implementation: Annotated[tuple[Text, ...], Field(max_length=100)]
    """The steps, in their order."""
    test_commands: Annotated[tuple[Line, ...], Field(max_length=50)]
    """The commands that show that it works."""
    acceptance: Annotated[tuple[Text, ...], Field(max_length=50)]
    """What must hold when it is done, each so that it can be looked at."""
    depends_on: Annotated[tuple[TaskId, ...], Field(max_length=100)]
    """Tasks of this solution that come first."""
    estimated_minutes: Annotated[int, Field(ge=1, le=10_000)]
    """How long it takes to carry it out."""


class SolutionAnswer(StrictWire):
    """The solution of one issue."""

    id: TaskId
    """`SOL-` and the issue's id."""
    plan_path: Line
    """The path of the plan's file, relative to the repository's root."""
    summary: Text
    """The solution in one or two sentences."""
    tasks: Annotated[tuple[SolutionTask, ...], Field(min_length=1, max_length=100)]
    """The pieces of the work, which together do all that the issue asks for."""
    predicted_files: Annotated[tuple[Path, ...], Field(min_length=1, max_length=1000)]
    """Every file that the work will create, change or delete, the plan's file aside."""

    @property
    def result_text(self) -> str:
        """The plan's path."""
        return self.plan_path


class TaskDone(StrictWire):
    """What became of one task of the solution."""

    id: TaskId
    """The task's id, as the solution has it."""
    status: Literal["completed", "failed", "skipped"]
    """What became of it."""
    note: str
    """What came of it, and why where it is not completed; may be empty."""


class ExecutionAnswer(StrictWire):
    """What became of a solution."""

    status: Literal["completed", "failed"]
    """`completed` only where all that the solution asks for is done and shown to work."""
    summary: Text
    """What was done, or why it could not be done."""
    tasks: Annotated[tuple[TaskDone, ...], Field(max_length=100)]
    """Each task of the solution, in the order in which it was carried out."""
    commit_hash: str | None
    """The commit that the agent made itself, if it made one."""
    files_modified: Annotated[tuple[Path, ...], Field(max_length=1000)]
    """Every file that was created, changed or deleted."""

    @property
    def result_text(self) -> str:
        """The summary."""
        return self.summary


class ExecutionRecord(Wire):
    """What was carried out of a solution, as git and the executor have it; it lies on its host's disk."""

    summary: str
    tasks: tuple[TaskDone, ...] = ()
    files_modified: tuple[str, ...] = ()
    """Every file that changed, as git says, the plan's file aside."""


class Outline(Wire):
    """What a pipeline remembers of a solution: less than 1 KB. The whole lies on its host's disk."""

    id: str
    summary: str = ""
    tasks: tuple[tuple[str, str], ...] = ()
    """Of each: id, title."""
    files: tuple[str, ...] = ()
    """The predicted files, as far as they are remembered."""
    files_count: int = 0
