"""The further jobs: plan and execute a pipeline's solution, and answer on a pull request."""

from __future__ import annotations

from septet.agents.scripted.hands import read
from septet.agents.scripted.jobs import implement, obey, plan, predicted_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from septet.agents.scripted.hands import Hands
    from septet.agents.scripted.jobs import Answer, Job
    from septet.agents.scripted.task import PromptTask

_MARKS, _BETWEEN = ("<<<<<<< ", ">>>>>>> "), "======="


def plan_solution(task: PromptTask, hands: Hands) -> Answer:
    """Write the plan, and answer with a solution: a sequence of tasks, one for each file that will change."""
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
    """Execute the plan, and answer with the status of each task of the solution."""
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
"""The jobs in a pipeline, by step."""


def rework(task: PromptTask, hands: Hands) -> Answer:
    """Make the changes in logs and reviews, keep both sides of a conflict, and reply to each thread."""
    checks, reviews = task.feedback.get("checks", []), task.feedback.get("reviews", [])
    done = [line for check in checks for line in obey(task, hands, str(check.get("log", "")))]
    done += [line for review in reviews for line in obey(task, hands, str(review.get("body", "")))]
    replies = []
    for thread in task.feedback.get("threads", []):
        said = [line for each in thread["comments"] for line in obey(task, hands, str(each.get("body", "")))]
        done += said
        replies.append({"thread": thread["thread"], "reply": " ".join(said) or "There is nothing to change."})
    for path in (task.feedback.get("conflict") or {}).get("paths", []):
        content = read(task.folder / path)
        if content is not None:
            lines = (line for line in content.split("\n") if not line.startswith(_MARKS) and line != _BETWEEN)
            hands.write(path, "\n".join(lines))
            done.append(f"`{path}` holds what both sides have.")
    return {
        "success": True,
        "summary": " ".join(done) or "There is nothing to change.",
        "commit_message": "fix: answer what is said on the pull request",
        "replies": replies,
    }


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
