"""Solutions and executions as good agents answer; a test changes them for a mistake."""

from typing import Any

from septet.contracts.solution import ExecutionAnswer, SolutionAnswer

PLAN = "specs/issue-7-p1-7-planner-totals.md"


def task(task_id: str = "T1", file: str = "src/app.py", **changes: Any) -> dict[str, Any]:
    return {
        "id": task_id,
        "title": f"Add up in {file} ({task_id})",
        "scope": "src",
        "modification_points": [{"file": file, "change": "`total` returns the sum."}],
        "implementation": ["Replace `0` with `sum(prices)`."],
        "test_commands": ["python -m pytest -q"],
        "acceptance": [f"`total([1, 2])` in {file} is 3."],
        "depends_on": [],
        "estimated_minutes": 5,
        **changes,
    }


def solution_answer(*tasks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a solution of issue 7 as JSON; its files are its tasks' files."""
    those = tasks or (task(),)
    files = {point["file"]: None for each in those for point in each["modification_points"]}
    return {
        "id": "SOL-7",
        "plan_path": PLAN,
        "summary": "Totals add up.",
        "tasks": list(those),
        "predicted_files": list(files),
        **changes,
    }


def solution(*tasks: dict[str, Any], **changes: Any) -> SolutionAnswer:
    return SolutionAnswer.model_validate(solution_answer(*tasks, **changes), strict=False)


def execution_answer(**changes: Any) -> dict[str, Any]:
    """Return the answer of an executor that did the one task of issue 7."""
    return {
        "status": "completed",
        "summary": "Totals are right.",
        "tasks": [{"id": "T1", "status": "completed", "note": ""}],
        "commit_hash": None,
        "files_modified": ["src/app.py"],
        **changes,
    }


def execution(**changes: Any) -> ExecutionAnswer:
    return ExecutionAnswer.model_validate(execution_answer(**changes), strict=False)
