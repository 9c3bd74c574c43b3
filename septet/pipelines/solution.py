"""Check a planner's solution before an executor gets it: complete, consistent, possible and clear.

For each mistake, the planner gets one sentence with the place and the remedy.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from septet.contracts.solution import SOLUTION_LIMIT_BYTES, ExecutionAnswer, Outline, SolutionAnswer, SolutionTask
from septet.pipelines.issues import circle_in
from septet.system.text import cut, cut_line, name_some


def normal_path(path: str) -> str:
    """Return a path's normal spelling: `./src//a.py` becomes `src/a.py`, and no `/` stays at the end."""
    return str(PurePosixPath(path.strip()))


def normal_path_in(worktree: Path, path: str) -> str:
    """Return a path's normal spelling; an absolute path in the worktree becomes relative."""
    pure = PurePosixPath(path.strip())
    for root in (worktree, worktree.resolve()):
        if pure.is_relative_to(root):
            return str(pure.relative_to(root))
    return str(pure)


def is_in(path: str, scope: str) -> bool:
    """Return whether a path is the scope or is below it; both must have the normal spelling."""
    return PurePosixPath(path).is_relative_to(PurePosixPath(scope))


def why_outside(worktree: Path, path: str) -> str | None:
    """Return why a path is outside of the worktree; `None` for a path inside, which need not exist.

    A symlink that leads out of the worktree makes a path an outside path.
    """
    pure = PurePosixPath(path.strip())
    if pure.is_absolute():
        return "is absolute"
    if ".." in pure.parts:
        return "has `..` in it"
    if any(part.lower() == ".git" for part in pure.parts):
        return "is git's own"
    root = worktree.resolve()
    try:
        real = (root / pure).resolve()
        with suppress(FileNotFoundError, NotADirectoryError):
            real.stat()
    except (OSError, RuntimeError, ValueError):
        # RuntimeError is a loop of symlinks before Python 3.13, ValueError a name that no file can have.
        return "is a name that no file can have"
    if not real.is_relative_to(root) or real.is_relative_to(root / ".git"):
        return "points outside the repository through a symlink"
    return None


SOLUTION_ID: Final = "SOL-"
_FINDINGS_BYTES: Final = 1300
"""The most bytes of all mistakes in the text for the planner."""
_SHOWN: Final = 80
_VAGUE: Final = frozenset(
    {
        "", "works", "it works", "everything works", "all works", "works as expected", "it works as expected",
        "works correctly", "it works correctly", "works fine", "as expected", "done", "it is done", "is done",
        "ok", "okay", "fine", "good", "looks good", "correct", "it is correct", "complete", "completed",
        "is complete", "implemented", "is implemented", "it is implemented", "success", "successful", "tbd",
        "todo", "n/a", "na", "none", "see above", "see title", "the task is done", "the code works",
    }
)  # fmt: skip
"""Phrases that fit any task, so that nobody could check them."""


@dataclass(frozen=True, slots=True)
class IssueScope:
    """What a solution is checked against: the issue, the plan's file and the worktree."""

    issue_id: str
    plan_path: str
    """The plan's file, relative to the worktree's root."""
    worktree: Path


def findings(solution: SolutionAnswer, scope: IssueScope) -> tuple[str, ...]:
    """Return the mistakes in a solution; empty if an executor may carry it out."""
    found = [*_wrong_as_a_whole(solution, scope), *_wrong_dependencies(solution.tasks)]
    for task in solution.tasks:
        found += _wrong_in(task, solution, scope)
    found += _wrong_predictions(solution, scope)
    return tuple(dict.fromkeys(found))


def findings_text(messages: Sequence[str]) -> str:
    """Return the mistakes as a short text for the planner: the first ones, and how many more there are."""
    lines: list[str] = []
    for number, finding in enumerate(messages):
        if sum(len(line.encode()) + 3 for line in lines) + len(finding.encode()) > _FINDINGS_BYTES:
            lines.append(f"and {len(messages) - number} more of these kinds")
            break
        lines.append(finding)
    heading = f"The solution has {len(messages)} {'finding' if len(messages) == 1 else 'findings'}:"
    return "\n".join([heading, *(f"- {line}" for line in lines)])


def _wrong_as_a_whole(solution: SolutionAnswer, issue_scope: IssueScope) -> Iterator[str]:
    stem = f"{SOLUTION_ID}{issue_scope.issue_id}"
    number = solution.id.removeprefix(f"{stem}-")
    if solution.id != stem and not (number != solution.id and number.isascii() and number.isdigit()):
        yield f"id is {solution.id!r}: it is {stem!r} for this issue."
    if (size := len(solution.model_dump_json().encode())) > SOLUTION_LIMIT_BYTES:
        yield f"The solution holds {size} bytes, {SOLUTION_LIMIT_BYTES} are allowed: say it shorter."
    for task_id in _twice(task.id for task in solution.tasks):
        yield f"tasks: the id {task_id!r} is there more than once: give each task its own."
    for title in _twice(_plain(task.title) for task in solution.tasks):
        yield f"tasks: the title {cut(title, _SHOWN)!r} is there more than once: make it one task."


def _wrong_dependencies(tasks: Sequence[SolutionTask]) -> Iterator[str]:
    task_ids = {task.id for task in tasks}
    for task in tasks:
        for other in dict.fromkeys(task.depends_on):
            if other not in task_ids:
                yield f"task {task.id}: depends_on names {other!r}, which is not a task: name one that is."
    if circle := circle_in({task.id: [other for other in task.depends_on if other in task_ids] for task in tasks}):
        yield f"tasks: depends_on goes in a circle ({' after '.join(circle)}): take one of them out."


def _wrong_in(task: SolutionTask, solution: SolutionAnswer, issue_scope: IssueScope) -> Iterator[str]:
    place = f"task {task.id}"
    if not task.modification_points:
        yield f"{place}: modification_points is empty: name each file that it changes, and what changes there."
    if not task.implementation:
        yield f"{place}: implementation is empty: say how it is done, step by step."
    yield from _wrong_acceptance(place, task)
    if why := why_outside(issue_scope.worktree, task.scope):
        yield f"{place}: scope {cut(task.scope, _SHOWN)!r} {why}: name a folder or a file of the repository."
        return
    scope = normal_path(task.scope)
    predicted = {normal_path(path) for path in solution.predicted_files}
    for point in task.modification_points:
        file = normal_path(point.file)
        point_name = f"{place}: modification point {cut(point.file, _SHOWN)!r}"
        if why := why_outside(issue_scope.worktree, point.file):
            yield f"{point_name} {why}: name a file of the repository."
            continue
        if not is_in(file, scope):
            scope = cut(task.scope, _SHOWN)
            yield f"{point_name} is outside its scope {scope!r}: widen the scope or move the point."
        if file not in predicted:
            yield f"{point_name} is not among predicted_files: add it there."


def _wrong_acceptance(place: str, task: SolutionTask) -> Iterator[str]:
    if not task.acceptance:
        yield f"{place}: acceptance is empty: say what holds when it is done, so that it can be looked at."
    for criterion in task.acceptance:
        plain = _plain(criterion)
        if plain in _VAGUE:
            yield f"{place}: acceptance {cut(criterion, _SHOWN)!r} is vague: say what can be seen, and where."
        elif plain == _plain(task.title):
            yield f"{place}: acceptance repeats the title: say what can be seen when it is done."


def _wrong_predictions(solution: SolutionAnswer, issue_scope: IssueScope) -> Iterator[str]:
    for path in _twice(normal_path(path) for path in solution.predicted_files):
        yield f"predicted_files: {cut(path, _SHOWN)!r} is there more than once: name each file once."
    for path in solution.predicted_files:
        if why := why_outside(issue_scope.worktree, path):
            yield f"predicted_files: {cut(path, _SHOWN)!r} {why}: name a file of the repository."
        elif normal_path(path) == normal_path(issue_scope.plan_path):
            yield f"predicted_files: {cut(path, _SHOWN)!r} is the plan's own file: leave it out."
        elif (issue_scope.worktree / normal_path(path)).is_dir():
            yield f"predicted_files: {cut(path, _SHOWN)!r} is a folder: name the files in it that will change."


def _twice(texts: Iterable[str]) -> list[str]:
    return [text for text, times in Counter(texts).items() if times > 1]


def _plain(text: str) -> str:
    """Return a sentence in lower case, without extra spaces and outer punctuation."""
    return " ".join(text.lower().split()).strip(" .!-*_`'\"")


OUTLINE_LIMIT_BYTES: Final = 1024
_WITH_TASKS_BYTES: Final = 560
"""The most bytes of an outline's tasks; the rest is for files, which decide what may run in parallel."""


def outline_of(solution: SolutionAnswer) -> Outline:
    """Return an outline: as many tasks and predicted files as fit into `OUTLINE_LIMIT_BYTES` of JSON."""
    files = tuple(dict.fromkeys(normal_path(path) for path in solution.predicted_files))
    outline = Outline(id=solution.id, summary=cut_line(solution.summary, 160), files_count=len(files))
    for task in solution.tasks:
        longer = outline.model_copy(update={"tasks": (*outline.tasks, (task.id, cut_line(task.title, 48)))})
        if _size(longer) > _WITH_TASKS_BYTES:
            break
        outline = longer
    for path in files:
        longer = outline.model_copy(update={"files": (*outline.files, path)})
        if _size(longer) < OUTLINE_LIMIT_BYTES:
            outline = longer
    return outline


def _size(outline: Outline) -> int:
    return len(outline.model_dump_json().encode())


_NAMED = 10


@dataclass(frozen=True, slots=True)
class CheckedExecution:
    """The result of checking an executor's answer."""

    findings: tuple[str, ...] = ()
    """False or missing claims, which the executor must correct."""
    warnings: tuple[str, ...] = ()


def check_execution(
    answer: ExecutionAnswer,
    solution: SolutionAnswer | None,
    claimed_files: Collection[str],
    changed_files: Collection[str],
) -> CheckedExecution:
    """Check an answer with the status `completed` against the solution's tasks and git's changed files.

    `claimed_files` are paths as git prints them; `changed_files` lacks the plan's file.
    """
    findings = [*(_wrong_tasks(answer, solution) if solution is not None else ())]
    warnings = []
    if false := sorted(set(claimed_files) - set(changed_files)):
        what = f"git sees no change in {_join(false)}"
        findings.append(f"files_modified: {what}: change what is missing, or leave them out.")
    if silent := sorted(set(changed_files) - set(claimed_files)):
        warnings.append(f"Changed, and not in files_modified: {_join(silent)}.")
    if solution is None:
        warnings.append("The solution is not on this host: the answer was not checked against its tasks.")
    if skipped := [task.id for task in answer.tasks if task.status == "skipped"]:
        warnings.append(f"Skipped tasks: {_join(skipped)}.")
    return CheckedExecution(tuple(findings), tuple(warnings))


def _wrong_tasks(answer: ExecutionAnswer, solution: SolutionAnswer) -> Iterator[str]:
    task_ids = [task.id for task in solution.tasks]
    answers = Counter(task.id for task in answer.tasks)
    if missing := [task_id for task_id in task_ids if task_id not in answers]:
        yield f"tasks: nothing is said of {_join(missing)} of {solution.id}: say what became of each task."
    if unknown := sorted(set(answers) - set(task_ids)):
        yield f"tasks: {_join(unknown)} are not tasks of {solution.id}: name tasks of the solution."
    if twice := [task_id for task_id, times in answers.items() if times > 1]:
        yield f"tasks: {_join(twice)} are there more than once: say once what became of each."
    if failures := [task.id for task in answer.tasks if task.status == "failed"]:
        yield f"status is completed, and yet {_join(failures)} failed: mend them, or answer `failed`."


def _join(names: list[str]) -> str:
    return name_some(names, _NAMED)
