"""The model's part in a pipeline's steps; the issue follows from the prompt."""

from dataclasses import dataclass, field
from typing import Any, Final

from fakes.model_stub import Asked, Model, Part
from fakes.solutions import task

from septet.contracts.pipeline import PipelineInput, PipelineIssue

PIPELINE: Final = "pl-real"
ISSUES: Final = ("alpha", "beta")
PLANNER: Final = f"{PIPELINE}-planner"
EXECUTOR: Final = f"{PIPELINE}-executor-1"


@dataclass
class LineModel(Model):
    parts: dict[str, Part] = field(default_factory=dict)

    def part(self, asked: Asked) -> Part | None:
        issue = issue_in(asked)
        return _parts(issue).get(asked.step) if issue else None

    def heard_in(self, issue: str, step: str) -> str:
        """Return the whole conversation at the model's first request in a step of an issue."""
        found = next(each for each in self.asked if (issue_in(each), each.step) == (issue, step))
        return "\n".join(found.heard)


def line_input(repository: str, **choices: Any) -> PipelineInput:
    issues = tuple(PipelineIssue(id=issue, title=f"Add {issue}.txt", body=f"It says {issue}.") for issue in ISSUES)
    return PipelineInput(repository=repository, issues=issues, **choices)


def branch_of(issue: str) -> str:
    return f"septet/feat-{PIPELINE}-{issue}-file"


def issue_in(asked: Asked) -> str:
    """Return the issue of a step's prompt; empty for a request beside the work."""
    return next((issue for issue in ISSUES if issue in asked.prompt), "")


def _parts(issue: str) -> dict[str, Part]:
    plan, file = f"specs/{PIPELINE}-{issue}-planner-file.md", f"{issue}.txt"
    one = task("T1", file, scope=file, title=f"Add {file}")
    solution = {
        "id": f"SOL-{issue}",
        "plan_path": plan,
        "summary": f"{file} is added.",
        "tasks": [one],
        "predicted_files": [file],
    }
    execution = {
        "status": "completed",
        "summary": f"{file} is there.",
        "tasks": [{"id": "T1", "status": "completed", "note": ""}],
        "commit_hash": None,
        "files_modified": [file],
    }
    return {
        "classify_issue": Part({"issue_class": "/feature"}),
        "build_plan": Part(solution, (f"mkdir -p specs && echo '# T1: add {file}' > {plan}",)),
        "find_plan_file": Part({"plan_path": plan}),
        "generate_branch": Part({"branch_name": branch_of(issue)}),
        "implement_plan": Part(execution, (f"echo {issue} > {file}",)),
        "create_commit": Part({"commit_message": f"feat: add {file}"}),
        "create_pull_request": Part({"title": f"Add {file}", "body": "It was wanted."}),
    }
