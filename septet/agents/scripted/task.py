"""Read the step and its facts from a prompt, as a model would."""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

STEPS = (
    "classify_issue", "build_plan", "find_plan_file", "generate_branch", "implement_plan", "create_commit",
    "create_pull_request", "rework", "read_outgoing",
)  # fmt: skip
_HEADING_LINES = 5
"""The number of first lines of a command that may hold the heading with the step."""
_KEYS_OF_STEP = {
    "classify_issue": {"issue_class"},
    "build_plan": {"plan_path", "summary"},
    "find_plan_file": {"plan_path"},
    "generate_branch": {"branch_name"},
    "implement_plan": {"success", "summary", "key_changes_made", "key_learnings"},
    "create_commit": {"commit_message"},
    "create_pull_request": {"title", "body"},
    "rework": {"success", "summary", "commit_message", "replies"},
    "read_outgoing": {"findings"},
}
_KEYS_IN_PIPELINE = {
    "build_plan": {"id", "plan_path", "summary", "tasks", "predicted_files"},
    "implement_plan": {"status", "summary", "tasks", "commit_hash", "files_modified"},
}
_OBJECTS_TRIED = 20
"""The most places at which parsing of an object is tried: a foreign prompt may hold any number of braces."""
_TYPES = {"/bug": "bug", "/feature": "feat", "/chore": "chore"}


class PromptTask:
    """The task of one step, with the facts that the prompt contains."""

    def __init__(self, prompt: str, folder: Path) -> None:
        """Read the facts from `prompt`; if it names no work order, the folder's name is the work order's id."""
        self.folder = folder
        facts = _facts(prompt)
        issue = _issue(prompt)
        self.title: str = str(issue.get("title") or "").strip() or _first_line(prompt)
        self.body: str = str(issue.get("body") or "") if issue else prompt
        self.labels: str = str(issue.get("labels") or "")
        self.number: str = facts.get("issue number", str(issue.get("number") or ""))
        self.order: str = facts.get("work order") or folder.name
        named = _first(r"(?<![\w/])/(?:bug|feature|chore)\b", prompt)
        self.issue_class: str = _class_in_heading(prompt) or facts.get("class") or named
        self.plan_path: str = facts.get("plan") or _first(r"\bspecs/[^\s`'\"<>]+\.md\b", prompt)
        self.branch: str = facts.get("branch", "")
        self.solution: str = facts.get("solution", "")
        """The id of the solution; empty outside a pipeline."""
        self.given: dict[str, Any] = _value(_between(prompt, "<solution>", "</solution>"))
        """The solution to execute; empty if the prompt holds no solution."""
        self.feedback: dict[str, Any] = _feedback(prompt)
        """The checks, reviews and threads of the pull request; empty if the prompt holds none."""
        self.planner_answer: str = _between(prompt, "<planner_answer>", "</planner_answer>")

    @property
    def type(self) -> str:
        """The first part of the branch's name: `bug`, `feat` or `chore`."""
        return _TYPES.get(self.issue_class, "feat")

    @property
    def slug(self) -> str:
        """The first words of the title, joined by `-`, for names."""
        words = re.findall(r"[a-z0-9]+", self.title.lower())[:6]
        return "-".join(words)[:50].strip("-") or "work"

    @property
    def stem(self) -> str:
        """The issue's number and the work order's id, for the names of branch and plan."""
        return f"issue-{self.number}-{self.order}" if self.number else self.order


def step_of(prompt: str, schema: dict[str, Any] | None) -> str:
    """Return the step of a prompt, by the command's heading or by the schema's keys; empty if unknown."""
    for line in prompt.lstrip("\ufeff \n").split("\n", _HEADING_LINES)[:_HEADING_LINES]:
        if line.startswith("# "):
            name = line[2:].strip()
            return next((step for step in STEPS if name == step or name.startswith(f"{step}_")), "")
    keys = _keys(schema)
    known = (*_KEYS_OF_STEP.items(), *_KEYS_IN_PIPELINE.items())
    return next((step for step, own in known if keys - {"url"} == own), "")


def _keys(schema: object) -> set[str]:
    """Return the keys of the objects that a JSON schema accepts, in all its alternatives."""
    if not isinstance(schema, dict):
        return set()
    found = set(schema.get("properties", {}))
    for several in ("anyOf", "oneOf"):
        for inner in schema.get(several, []):
            target = schema.get("$defs", {}).get(str(inner.get("$ref", "")).rpartition("/")[2], inner)
            found |= _keys(target)
    return found


def _facts(prompt: str) -> dict[str, str]:
    """Return the values of lines such as "- Work order: `wo-1`", by name; the first value of a name counts."""
    facts: dict[str, str] = {}
    for name, value in re.findall(r"^- ([A-Z][a-z ]+): `([^`\n]*)`", prompt, re.MULTILINE):
        facts.setdefault(name.lower(), value)
    return facts


def _issue(prompt: str) -> dict[str, Any]:
    marked = re.search(r"\n<(issue(?:-[0-9a-f]+)?)>\n(.*?)\n</\1>\n", prompt, re.DOTALL)
    text = marked[2] if marked else prompt
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(_OBJECTS_TRIED):
        if start < 0:
            break
        try:
            value, _end = decoder.raw_decode(text, start)
        except ValueError:
            value = None
        if isinstance(value, dict) and "title" in value:
            return value
        start = text.find("{", start + 1)
    return {}


def _feedback(prompt: str) -> dict[str, Any]:
    marked = re.search(r"\n<(feedback-[0-9a-f]+)>\n(.*?)\n</\1>\n", prompt, re.DOTALL)
    return _value(marked[2]) if marked else {}


def _value(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _between(text: str, begin: str, end: str) -> str:
    _, found, rest = text.partition(f"\n{begin}\n")
    return rest.partition(f"\n{end}\n")[0] if found else ""


def _class_in_heading(prompt: str) -> str:
    found = _first(r"(?<=\A# build_plan_)(?:bug|feature|chore)\b", prompt)
    return f"/{found}" if found else ""


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


def _first_line(prompt: str) -> str:
    lines = (line.strip() for line in prompt.splitlines() if not line.startswith("# "))
    return next((line for line in lines if line), "")[:200]
