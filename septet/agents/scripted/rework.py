"""The job after the seven: what checks, reviewers and a conflict ask for on a pull request."""

from __future__ import annotations

from septet.agents.scripted.hands import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from septet.agents.scripted.hands import Hands
    from septet.agents.scripted.task import PromptTask

_OURS, _BETWEEN, _THEIRS = "<<<<<<< ", "=======", ">>>>>>> "


def rework(task: PromptTask, hands: Hands, obey: Callable[[PromptTask, Hands, str], list[str]]) -> dict[str, Any]:
    """Do what logs and reviewers spell out, keep both sides of a conflict, and reply to each thread.

    Args:
        task: The task of the prompt.
        hands: What edits.
        obey: Makes the changes that a text spells out, and says them.
    """
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
            hands.write(path, both_sides(content))
            done.append(f"`{path}` holds what both sides have.")
    return {
        "success": True,
        "summary": " ".join(done) or "There is nothing to change.",
        "commit_message": "fix: answer what is said on the pull request",
        "replies": replies,
    }


def both_sides(content: str) -> str:
    """Return a text with a conflict's markers taken out: what both sides have stays, one after the other."""
    lines = content.split("\n")
    marks = (_OURS, _THEIRS)
    return "\n".join(line for line in lines if not line.startswith(marks) and line != _BETWEEN)
