"""Check an executor's answer against the solution and against git."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from septet.contracts.solution import ExecutionAnswer, SolutionAnswer
from septet.system.text import name_some

_NAMED = 10


@dataclass(frozen=True, slots=True)
class CheckedExecution:
    """The mistakes and warnings that the check of an answer found."""

    findings: tuple[str, ...] = ()
    """The false or missing claims, which the executor reads."""
    warnings: tuple[str, ...] = ()


def check_execution(
    answer: ExecutionAnswer,
    solution: SolutionAnswer | None,
    claimed_files: Collection[str],
    changed_files: Collection[str],
) -> CheckedExecution:
    """Check an answer with the status `completed` against the solution's tasks and the changed files.

    Args:
        answer: The executor's answer.
        solution: The solution; `None` if this host does not have the solution.
        claimed_files: The changed files in the answer, in the spelling of `normal_path`.
        changed_files: The files that git reports as changed, except the plan's file.
    """
    false = sorted(set(claimed_files) - set(changed_files))
    silent = sorted(set(changed_files) - set(claimed_files))
    findings = [*(_wrong_tasks(answer, solution) if solution is not None else ())]
    warnings = []
    if false:
        findings.append(
            f"files_modified: git sees no change in {_join(false)}: change what is missing, or leave them out."
        )
    if silent:
        warnings.append(f"Changed, and not in files_modified: {_join(silent)}.")
    if solution is None:
        warnings.append("The solution is not on this host: the answer was not checked against its tasks.")
    skipped = [task.id for task in answer.tasks if task.status == "skipped"]
    if skipped:
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
