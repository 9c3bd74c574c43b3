"""The two jobs that are others inside a pipeline: plan a solution, and carry one out task by task."""

from __future__ import annotations

from septet.agents.scripted.jobs import implement, plan, predicted_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from septet.agents.scripted.hands import Hands
    from septet.agents.scripted.jobs import Answer, Job
    from septet.agents.scripted.task import PromptTask


def plan_solution(task: PromptTask, hands: Hands) -> Answer:
    """Write the plan, and answer with a solution: a task for each file that will change, one after the other."""
    planned = plan(task, hands)
    files = predicted_files(task, planned["plan_path"])
    return {
        "id": task.solution,
        "plan_path": planned["plan_path"],
        "summary": planned["summary"],
        "tasks": [_task(number, file) for number, file in enumerate(files, start=1)],
        "predicted_files": files,
    }


def carry_out_solution(task: PromptTask, hands: Hands) -> Answer:
    """Do what the plan says, and say what became of each task of the solution."""
    done = implement(task, hands)
    status = "completed" if done["success"] else "failed"
    tasks = task.given.get("tasks", [])
    return {
        "status": status,
        "summary": done["summary"],
        "tasks": [{"id": each["id"], "status": status, "note": each["title"]} for each in tasks],
        "commit_hash": None,
        "files_modified": list(hands.touched),
    }


JOBS_IN_PIPELINE: dict[str, Job] = {"build_plan": plan_solution, "implement_plan": carry_out_solution}
"""By step."""


def _task(number: int, file: str) -> Answer:
    return {
        "id": f"T{number}",
        "title": f"Change {file}",
        "scope": file,
        "modification_points": [{"file": file, "change": "What the plan's steps say of this file."}],
        "implementation": [f"Do the plan's steps for {file}."],
        "test_commands": ["git diff --check"],
        "acceptance": [f"{file} holds what the plan's steps say."],
        "depends_on": [f"T{number - 1}"] if number > 1 else [],
        "estimated_minutes": 5,
    }
