"""The check of an executor's answer against the solution and against git."""

import pytest
from fakes.solutions import execution, solution, task

from septet.contracts.solution import SolutionAnswer
from septet.pipelines.solution import check_execution

SOLUTION = solution(task(), task("T2", "src/b.py"))
BOTH = [{"id": name, "status": "completed", "note": ""} for name in ("T1", "T2")]


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        (BOTH[:1], "nothing is said of T2 of SOL-7"),
        ([*BOTH, {"id": "T9", "status": "completed", "note": ""}], "T9 are not tasks of SOL-7"),
        ([*BOTH, BOTH[0]], "T1 are there more than once"),
        ([BOTH[0], {**BOTH[1], "status": "failed"}], "and yet T2 failed"),
    ],
)
def test_tasks_that_do_not_fit_are_found(tasks: list[dict[str, str]], words: str) -> None:
    """A task that is missing, unknown, repeated or failed contradicts `completed`."""
    found = check_execution(execution(tasks=tasks), SOLUTION, {"a"}, {"a"}).findings
    assert len(found) == 1
    assert words in found[0]


def test_a_file_that_did_not_change_is_found_and_one_that_was_not_named_is_a_warning() -> None:
    """A named file without a change is a finding; a changed file without a name is a warning."""
    found = check_execution(
        execution(tasks=BOTH), SOLUTION, {"src/app.py", "src/b.py"}, {"src/app.py", "src/c.py"}
    )
    assert found.findings == (
        "files_modified: git sees no change in src/b.py: change what is missing, or leave them out.",
    )
    assert found.warnings == ("Changed, and not in files_modified: src/c.py.",)


@pytest.mark.parametrize(
    ("tasks", "known", "warning"),
    [
        ([], None, "is not on this host"),
        ([BOTH[0], {**BOTH[1], "status": "skipped"}], SOLUTION, "Skipped tasks: T2."),
    ],
    ids=["another host", "skipped"],
)
def test_what_cannot_be_checked_and_a_skipped_task_are_warnings(
    tasks: list[dict[str, str]], known: SolutionAnswer | None, warning: str
) -> None:
    """A skipped task is a warning, and so are the tasks on a host without the solution."""
    found = check_execution(execution(tasks=tasks), known, {"a"}, {"a"})
    assert (found.findings, len(found.warnings), warning in found.warnings[0]) == ((), 1, True)
