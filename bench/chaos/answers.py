"""The answers of the chaos program's agent: to each step, and in a pipeline as its two agents give them."""

from __future__ import annotations

import re
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from septet.agents.scripted.task import PromptTask

UNITS = 6
"""The number of parts of each step's work."""
_OF_PIPELINE = re.compile(r"\bpl-\d+-i\d{3}\b")


def order_of(prompt: str, folder: Path) -> str:
    """Return the work order of a prompt: in a pipeline the prompt names it, otherwise the folder."""
    found = _OF_PIPELINE.search(prompt)
    return found[0] if found else folder.name


def answer_of(step: str, task: PromptTask, order: str) -> dict[str, object]:
    """Return the answer to a step."""
    if step == "build_plan" and task.solution:
        return _solution(task.solution, order)
    if step == "implement_plan" and task.solution:
        return _carried_out(task, order)
    answers: dict[str, dict[str, object]] = {
        "classify_issue": {"issue_class": "/chore"},
        "build_plan": {"plan_path": plan_path(order), "summary": "Write the parts."},
        "find_plan_file": {"plan_path": plan_path(order)},
        "generate_branch": {"branch_name": f"chore-{order}-chaos"},
        "implement_plan": {"success": True, "summary": "Done.", "key_changes_made": ["work"], "key_learnings": []},
        "create_commit": {"commit_message": f"chore: work of {order}"},
    }
    return answers.get(step, {"title": f"chore: {order}", "body": "Parts were written."})


def plan_path(order: str) -> str:
    """Return the plan's path."""
    return f"specs/{order}-planner-chaos.md"


def _solution(solution_id: str, order: str) -> dict[str, object]:
    files = [f"work/{order}/part-{number}-1.txt" for number in range(1, UNITS + 1)]
    task = {
        "id": "T1",
        "title": "Write the parts",
        "scope": f"work/{order}",
        "modification_points": [{"file": file, "change": "The part is there."} for file in files],
        "implementation": ["Write each part, first as a draft."],
        "test_commands": ["git diff --check"],
        "acceptance": [f"work/{order} holds {UNITS} parts."],
        "depends_on": [],
        "estimated_minutes": 1,
    }
    return {
        "id": solution_id,
        "plan_path": plan_path(order),
        "summary": "Write the parts.",
        "tasks": [task],
        "predicted_files": files,
    }


def _carried_out(task: PromptTask, order: str) -> dict[str, object]:
    files = sorted(str(path) for path in Path("work", order).glob("*.txt"))
    tasks = [{"id": each["id"], "status": "completed", "note": ""} for each in task.given.get("tasks", [])]
    done = {"status": "completed", "summary": "Done.", "tasks": tasks, "commit_hash": None}
    return {**done, "files_modified": files}
