"""The answers of a pipeline's two agents: the planner's solution, and the executor's result."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from septet.contracts.answers import Line, ResultAnswer, Text
from septet.contracts.wire import StrictWire, Wire

SOLUTION_LIMIT_BYTES = 256 * 1024
"""The largest solution in bytes; a solution stays on disk, and the workflow receives only the outline."""

TaskId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Path = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00-\x1f]+$")]
"""A path relative to the repository's root, with `/`."""


class ModificationPoint(StrictWire):
    """One place that a task changes."""

    file: Path
    """The file, relative to the repository's root."""
    change: Text
    """The change: a function, a section, a value."""


class SolutionTask(StrictWire):
    """One piece of the work."""

    id: TaskId
    """The task's id, unique in the solution, such as `T1`."""
    title: Line
    """The work, in a few words."""
    scope: Path
    """The folder or file in the repository to which the task is limited."""
    modification_points: Annotated[tuple[ModificationPoint, ...], Field(max_length=200)]
    """Every place that the task changes."""
    implementation: Annotated[tuple[Text, ...], Field(max_length=100)]
    """The steps, in order."""
    test_commands: Annotated[tuple[Line, ...], Field(max_length=50)]
    """The commands that show that the task works."""
    acceptance: Annotated[tuple[Text, ...], Field(max_length=50)]
    """The conditions that must hold when the task is done, each of them checkable."""
    depends_on: Annotated[tuple[TaskId, ...], Field(max_length=100)]
    """The tasks of this solution that must come first."""
    estimated_minutes: Annotated[int, Field(ge=1, le=10_000)]
    """The estimated minutes of work."""


class SolutionAnswer(ResultAnswer):
    """The solution of one issue."""

    id: TaskId
    """`SOL-` and the issue's id."""
    plan_path: Line
    """The path of the plan's file, relative to the repository's root."""
    summary: Text
    """The solution in one or two sentences."""
    tasks: Annotated[tuple[SolutionTask, ...], Field(min_length=1, max_length=100)]
    """The pieces of the work, which together cover the whole issue."""
    predicted_files: Annotated[tuple[Path, ...], Field(min_length=1, max_length=1000)]
    """Every file that the work will create, change or delete, except the plan's file."""
    main_field: ClassVar[str] = "plan_path"


class TaskDone(StrictWire):
    """The result of one task of the solution."""

    id: TaskId
    """The task's id in the solution."""
    status: Literal["completed", "failed", "skipped"]
    """The task's result."""
    note: str
    """A note on the result, with the reason if the task is not completed; may be empty."""


class ExecutionAnswer(ResultAnswer):
    """The result of a solution."""

    status: Literal["completed", "failed"]
    """`completed` only if the whole solution is done and shown to work."""
    summary: Text
    """The work that was done, or why it could not be done."""
    tasks: Annotated[tuple[TaskDone, ...], Field(max_length=100)]
    """Each task of the solution, in the order in which it was carried out."""
    commit_hash: str | None
    """The commit that the agent made itself, if it made one."""
    files_modified: Annotated[tuple[Path, ...], Field(max_length=1000)]
    """Every file that was created, changed or deleted."""
    main_field: ClassVar[str] = "summary"


class ExecutionRecord(Wire):
    """The executor's result for a solution, with the changed files from git; it stays on the host's disk."""

    summary: str
    tasks: tuple[TaskDone, ...] = ()
    files_modified: tuple[str, ...] = ()
    """Every file that git reports as changed, except the plan's file."""


class Outline(Wire):
    """The part of a solution that a pipeline remembers, below 1 KB; the whole solution stays on disk."""

    id: str
    summary: str = ""
    tasks: tuple[tuple[str, str], ...] = ()
    """The id and the title of each task."""
    files: tuple[str, ...] = ()
    """The first predicted files."""
    files_count: int = 0
