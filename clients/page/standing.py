"""Describe for people the state of a work order, and what it needs from a person."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from clients.disk.runs import started_runs
from septet.contracts.facts import KeyFinding
from septet.contracts.names import LOCAL_PULL, Stage, Status, Step
from septet.contracts.replies import BoardReply
from septet.contracts.task import Task
from septet.errors import SeptetError
from septet.forges.local.forge import LocalForge
from septet.settings import load_settings
from septet.state import StateDir
from septet.system.text import name_some

_PATHS_SHOWN: Final = 3
_STEPS: Final = {step.value: step.number for step in Step}


@dataclass(frozen=True, slots=True)
class BoardView:
    """The board, with the running steps that this host's disk shows."""

    reply: BoardReply
    steps: Mapping[str, str]
    """The running steps of work orders on this host, by the id of the work order."""
    nobody: str = ""
    """A notice, with its remedy, if no worker runs; else empty."""

    @property
    def needs(self) -> tuple[Task, ...]:
        """The work orders that need a person: waiting plans first, reviews last, each group oldest first."""
        tasks = [task for stage in self.reply.stages.values() for task in stage if need_of(task)]

        def turn(task: Task) -> tuple[bool, bool, str]:
            return task.stage is Stage.REVIEW, not task.waits_for_a_decision, task.updated_at

        return tuple(sorted(tasks, key=turn))


def view_of_board(state: StateDir, reply: BoardReply, nobody: str) -> BoardView:
    """Return a board with the running steps on this host, and the notice `nobody`, empty if a worker runs."""
    steps = {}
    for task in (task for tasks in reply.stages.values() for task in tasks if task.status is Status.RUNNING):
        with suppress(SeptetError, OSError):
            run = next(reversed(started_runs(state, task.id)), None)
            if run is not None and run.record is not None:
                steps[task.id] = run.record.step
    return BoardView(reply, steps, nobody)


def need_of(task: Task) -> str:
    """Return a work order's request to a person; empty if the work order needs no person."""
    match task.status, task.stage:
        case _, _ if task.stuck:
            need = f"Stuck: {task.stuck}"
        case _, _ if task.waits_for_a_decision:
            need = "Waiting for you to approve the plan"
        case _, _ if task.findings:
            need = _need_of_findings(task.findings)
        case _, _ if task.budget is not None and task.budget.is_spent:
            need = task.question
        case Status.FAILED, _:
            need = task.error.message.partition("\n")[0].rstrip(":") if task.error else "It failed"
        case Status.WAITING, Stage.BLOCKED:
            need = task.question or "Waiting for a host that does not answer"
        case Status.PENDING, Stage.BLOCKED:
            need = "Blocked: move it to triaged to start it"
        case Status.COMPLETED, Stage.BLOCKED:
            moved = f"Blocked: {task.error.message}" if task.error is not None and task.word == "blocked" else ""
            need = moved or "Its pull request was closed without a merge"
        case Status.COMPLETED, Stage.REVIEW:
            need = "Review its pull request, and merge it"
        case _:
            need = ""
    return need


def _need_of_findings(findings: tuple[KeyFinding, ...]) -> str:
    paths = [finding.path for finding in findings if finding.kind == "path"]
    keys = "what looks like a key" if any(finding.kind == "key" for finding in findings) else ""
    named = f"changes of {name_some(paths, _PATHS_SHOWN)}" if paths else ""
    read = "what a reader found before the push" if any(each.kind == "outgoing" for each in findings) else ""
    return f"Waiting for you to decide on {' and '.join(filter(None, (keys, named, read)))}"


def news_of(task: Task) -> tuple[tuple[str, str], ...]:
    """Return at most one notification for a browser: a key that begins with the page's path, and a text."""
    page, title = f"/work-orders/{quote(task.id, safe='')}", task.title or task.id
    need, key = need_of(task), _question_key(task) or task.word
    is_news = need or (task.is_closed and task.stage is not Stage.EXECUTING)
    return ((f"{page} {key}", f"{title}: {need or key}"),) if is_news else ()


def _question_key(task: Task) -> str:
    """Return a text that differs for each decision that a work order waits for; empty if it waits for none."""
    budget = task.budget
    if task.waits_for_a_decision:
        return f"plan {task.plan_sha256}"
    if task.findings:
        return f"findings {' '.join(finding.where for finding in task.findings)}"
    if budget is not None and budget.is_spent:
        return f"budget {budget.scope} {budget.step} {budget.limit} {budget.until or ''}"
    return ""


def wait_of(task: Task) -> str:
    """Return the cause of a work order's wait; an empty text if nothing waits, or a person must act."""
    match task.status, task.stage:
        case Status.PENDING, Stage.TRIAGED:
            return f"Waiting for {', '.join(task.after)}" if task.after else "Waiting for its turn"
        case Status.PENDING, Stage.COLLECTED:
            return "Not started: move it to triaged to queue it"
        case _, _ if task.budget is not None:
            return task.budget.message
        case _:
            return ""


def is_local_pull(address: str | None) -> bool:
    """Return whether a pull request belongs to a repository on this machine, so that the page can merge it."""
    return LOCAL_PULL.fullmatch(address or "") is not None


def obstacle_of(address: str | None) -> SeptetError | None:
    """Return the error that prevents the page from merging a local pull request; `None` without an obstacle."""
    if (pull := LOCAL_PULL.fullmatch(address or "")) is None:
        return None
    return LocalForge(Path(unquote(pull["path"])), load_settings().git_env).find_obstacle(int(pull["number"]))


def number_of_step(step: str) -> int:
    """Return the number of a step from 1 to 7; 0 if the name is no step."""
    return _STEPS.get(step, 0)


def steps_done(task: Task) -> int:
    """Return how many of the seven steps a work order has passed."""
    if task.status is Status.COMPLETED and not task.has_plan_alone:
        return len(_STEPS)
    return max((number_of_step(row.step) for row in task.steps if row.success), default=0)


def age_of(stamp: str) -> str:
    """Return how long ago a time was, in one unit, in the same format as `page.js`."""
    if not stamp:
        return ""
    seconds = max(0, int((datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "now"
