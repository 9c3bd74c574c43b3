"""The work of each step, for any repository: the words of the issue decide what is done."""

from __future__ import annotations

import re
from itertools import islice

from septet.agents.scripted.hands import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from septet.agents.scripted.hands import Hands
    from septet.agents.scripted.task import PromptTask

    Answer = dict[str, Any]
    Job = Callable[[PromptTask, Hands], Answer]

_BUG = (
    "bug", "fix", "error", "crash", "fail", "broken", "wrong", "incorrect", "exception", "traceback",
    "regression", "expected", "instead",
)  # fmt: skip
_CHORE = (
    "bump", "upgrade", "dependency", "dependencies", "refactor", "rename", "clean", "tidy", "typo", "lint",
    "format", "documentation", "docs", "readme", "ci", "chore",
)  # fmt: skip
_FEATURE = ("add", "support", "allow", "new", "feature", "option", "implement", "introduce", "want", "enable")
_WORDS = {"/bug": _BUG, "/chore": _CHORE, "/feature": _FEATURE}
_CHANGE = re.compile(r"[Ii]n `([^`\n]+)`,\s+(?:replace\s+)?`([^`\n]+)`\s+(?:should\s+be|with)\s+`([^`\n]*)`")
"""A change that an issue or a plan spells out: "In `path`, `old` should be `new`"."""
_LINE = re.compile(r"[Ww]rite\s+`([^`\n]+)`\s+into\s+`([^`\n]+)`")
"""A line that an issue or a plan requests at the end of an old or new file: "Write `line` into `path`"."""
_NOT_LOOKED_INTO = frozenset({"node_modules", "specs"})
_RECORDS = "docs/changes/"
_WORD_CHARACTERS = 3
_SMALL_WORDS = frozenset({"the", "and", "for", "not", "get", "are", "with"})
_NOTHING = (
    "The issue spells out no change, and the scripted agent makes no other. Issues spell it out in such words: "
    "In `app.py`, `a - b` should be `a + b`. For any other issue, use an agent with a model, such as claude."
)
_TITLES = {"/bug": "Bug", "/feature": "Feature", "/chore": "Chore"}
_COMMIT_TYPES = {"bug": "fix"}
"""The type of a commit, by the class of the issue, if type and class differ."""
_DONE = {"# Bug": "Fixed", "# Feature": "Added", "# Chore": "Tidied"}
"""The first word of the record of a change, by the first words of its plan."""


def classify(task: PromptTask, _hands: Hands) -> Answer:
    """Answer with the class whose words are most frequent in the issue; words of the title count three times."""
    title, text = _words(f"{task.title} {task.labels}"), _words(task.body)

    def score(issue_class: str) -> int:
        own = _WORDS[issue_class]
        return 3 * sum(_is_of(word, own) for word in title) + sum(_is_of(word, own) for word in text)

    return {"issue_class": max(("/feature", "/bug", "/chore"), key=score)}


def plan(task: PromptTask, hands: Hands) -> Answer:
    """Write a plan with the issue, and with the files and changes that the issue names."""
    path = f"specs/{task.stem}-planner-{task.slug}.md"
    changes = [f"In `{file}`, replace `{old}` with `{new}`." for file, old, new in _changes(task.body)]
    changes += [f"Write `{line}` into `{file}`." for line, file in lines_in(task.body)]
    written = [path for path, *_ in _changes(task.body)] + [path for _, path in lines_in(task.body)]
    files = list(dict.fromkeys([*written, *_files_spoken_of(task)]))[:5]
    steps = [*changes, f"Write down what was asked and what was done, for {_subject(task)}."]
    number = (f"- Issue number: `{task.number}`",) if task.number else ()
    quoted = "\n".join(f"> {line}".rstrip() for line in task.body.strip().splitlines()) or "> (no text)"
    text = [
        f"# {_TITLES.get(task.issue_class, 'Feature')}: {task.title}",
        "\n".join((*number, f"- Work order: `{task.order}`", f"- Class: `{task.issue_class}`")),
        f"## The issue, as it was written\n\n{quoted}",
        "## Files\n\n" + ("\n".join(f"- `{file}`" for file in files) or "- none that the issue names"),
        "## Steps\n\n" + "\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1)),
        "## Proof\n\nRun the repository's own tests.",
    ]
    hands.write(path, "\n\n".join(text) + "\n")
    return {"plan_path": path, "summary": f"{len(steps)} steps for: {task.title}"}


def find_plan(task: PromptTask, _hands: Hands) -> Answer:
    """Answer with the path that the planner named if the file exists, or else with the work order's first plan."""
    named = re.findall(r"[^\s`'\"<>]+\.md\b", task.planner_answer)
    own = sorted(
        f"specs/{path.name}" for path in task.folder.glob("specs/*.md") if f"{task.order}-planner-" in path.name
    )
    there = [path for path in (*named, *own) if (task.folder / path).is_file()]
    return {"plan_path": there[0] if there else "0"}


def name_branch(task: PromptTask, _hands: Hands) -> Answer:
    """Answer with a branch name from type, issue number, work order and title."""
    return {"branch_name": f"{task.type}-{task.stem}-{task.slug}"}


def implement(task: PromptTask, hands: Hands) -> Answer:
    """Make the changes that the plan spells out, and write a record of the changes."""
    text = read(task.folder / task.plan_path) or ""
    kind, _, rest = text.partition("\n")[0].partition(": ")
    title = f"{_DONE.get(kind, 'Done')}: {rest.strip() or task.title}"
    done = obey(task, hands, text)
    if not done and not hands.leave_notes:
        missing = " ".join(f"`{path}` does not hold `{old}`." for path, old, _ in _changes(text))
        return {"success": False, "summary": missing or _NOTHING, "key_changes_made": [], "key_learnings": []}
    record = _record(task, hands, title, done)
    code = "The planned changes are made" if done else "The plan spells out no change of code"
    return {
        "success": True,
        "summary": f"{title}. {code}; `{record}` tells of it.",
        "key_changes_made": [*done, f"`{record}` tells what was done."],
        "key_learnings": [f"The plan is {task.plan_path}."],
    }


def write_message(task: PromptTask, _hands: Hands) -> Answer:
    """Answer with the commit's message."""
    kind = _COMMIT_TYPES.get(task.type, task.type)
    subject = f"{kind}: {_subject(task)}"[:72].rstrip(" .")
    body = f"\n\nThis is issue {task.number}." if task.number else ""
    return {"commit_message": f"{subject}{body}"}


def describe(task: PromptTask, _hands: Hands) -> Answer:
    """Answer with the pull request's title and body."""
    kind = task.branch.rpartition("/")[2].partition("-")[0] or task.type
    title = f"{kind}: #{task.number} - {task.title}" if task.number else f"{kind}: {task.title}"
    asked = task.body.strip().partition("\n\n")[0]
    text = read(task.folder / task.plan_path) or ""
    changes = [f"- In `{path}`, `{old}` is now `{new}`." for path, old, new in _changes(text)]
    changes += [f"- `{path}` holds `{line}`." for line, path in lines_in(text)]
    listed = "\n".join(changes) or "- What the plan says."
    parts = [
        f"## What was asked\n\n{asked or task.title}",
        f"## What changes\n\n{listed}",
        f"The plan is `{task.plan_path}`.",
    ]
    closes = [f"Closes #{task.number}"] if task.number else []
    return {"title": title, "body": "\n\n".join([*parts, *closes, f"Work order: {task.order}"]) + "\n"}


def obey(task: PromptTask, hands: Hands, text: str) -> list[str]:
    """Make the changes that a text spells out; return a sentence for each change."""
    made = [_make(task, hands, *change) for change in _changes(text)]
    done = [f"In `{path}`, `{old}` is now `{new}`." for path, old, new in made if path]
    return done + [_write_line(task, hands, line, path) for line, path in lines_in(text)]


JOBS: dict[str, Job] = {
    "classify_issue": classify,
    "build_plan": plan,
    "find_plan_file": find_plan,
    "generate_branch": name_branch,
    "implement_plan": implement,
    "create_commit": write_message,
    "create_pull_request": describe,
    "read_outgoing": lambda _task, _hands: {"findings": []},
}


def _make(task: PromptTask, hands: Hands, path: str, old: str, new: str) -> tuple[str, str, str]:
    """Replace `old` by `new` in a file; return path, old and new. The path is empty if the file has neither."""
    content = read(task.folder / path) or ""
    if new and new in content:
        return path, old, new
    if old not in content:
        return "", old, new
    hands.edit(path, old, new)
    return path, old, new


def _write_line(task: PromptTask, hands: Hands, line: str, path: str) -> str:
    """Add a line at the end of a file unless the file has the line; return a sentence with line and file."""
    content = read(task.folder / path) or ""
    if line not in content.split("\n"):
        end = "" if content.endswith("\n") or not content else "\n"
        hands.write(path, f"{content}{end}{line}\n")
    return f"`{path}` holds `{line}`."


def predicted_files(task: PromptTask, plan_path: str) -> list[str]:
    """Return the files that `implement` would change now, except the plan's file."""
    changes = [(read(task.folder / path) or "", path, old, new) for path, old, new in _changes(task.body)]
    lines = [(read(task.folder / path) or "", path, line) for line, path in lines_in(task.body)]
    changed = [path for content, path, old, new in changes if old in content and not (new and new in content)]
    longer = [path for content, path, line in lines if line not in content.split("\n")]
    told = bool(lines) or any(old in content or (new and new in content) for content, _, old, new in changes)
    return list(dict.fromkeys([*changed, *longer, _record_path(task, plan_path, in_changelog=told)]))


def _record_path(task: PromptTask, plan_path: str, *, in_changelog: bool) -> str:
    """Return the path for the change's record: if `in_changelog`, a usable changelog; otherwise a new file."""
    if in_changelog and _unreleased_heading(read(task.folder / "CHANGELOG.md") or ""):
        return "CHANGELOG.md"
    stem = plan_path.rpartition("/")[2].removesuffix(".md").replace("-planner-", "-")
    docs = task.folder / "docs"
    inside = "" if docs.is_symlink() or docs.is_file() else _RECORDS
    return f"{inside}{stem or task.stem}.md"


def _unreleased_heading(changelog: str) -> str:
    """Return a changelog's heading of unreleased changes, with the empty line after it; empty if there is none."""
    match = re.search(r"^## \[?Unreleased\]?.*\n\n?", changelog, re.MULTILINE | re.IGNORECASE)
    return match[0] if match else ""


def _record(task: PromptTask, hands: Hands, title: str, changes: list[str]) -> str:
    path = _record_path(task, task.plan_path, in_changelog=bool(changes))
    if path == "CHANGELOG.md":
        changelog = read(task.folder / path) or ""
        heading = _unreleased_heading(changelog)
        if f"- {title}\n" not in changelog:
            hands.edit(path, heading, f"{heading.rstrip()}\n\n- {title}\n")
        return path
    hands.write(path, f"# {title}\n\nAsked for in `{task.plan_path}`.\n")
    told = "\n".join(f"- {sentence}" for sentence in changes) or "- No code was changed."
    hands.edit(path, f"`{task.plan_path}`.\n", f"`{task.plan_path}`.\n\n## What changed\n\n{told}\n")
    return path


def _changes(text: str) -> list[tuple[str, str, str]]:
    """Return the changes that a text spells out, as path, old text and new text, each once."""
    found = dict.fromkeys(match.groups() for match in _CHANGE.finditer(re.sub(r"\n> ?", "\n", text)))
    return [(path, old, new) for path, old, new in found if _may_be_changed(path)]


def lines_in(text: str) -> list[tuple[str, str]]:
    """Return the lines that a text (an issue or a plan) requests, each once and with the path of its file."""
    found = dict.fromkeys(match.groups() for match in _LINE.finditer(re.sub(r"\n> ?", "\n", text)))
    return [(line, path) for line, path in found if _may_be_changed(path)]


def _may_be_changed(path: str) -> bool:
    return not {"", "..", ".git"} & set(path.split("/"))


def _files_spoken_of(task: PromptTask) -> list[str]:
    """Return the files that the issue names, or whose names share a word with the issue's title."""
    files = list(islice(_files(task.folder), 3000))
    named = [path for path in files if path in task.body or path in task.title]
    words = {word for word in _words(task.title) if len(word) >= _WORD_CHARACTERS} - _SMALL_WORDS
    alike = [path for path in files if words & set(_words(path.rpartition("/")[2]))]
    return [path for path in dict.fromkeys([*named, *alike]) if not path.startswith(_RECORDS)]


def _files(folder: Path, below: str = "") -> Iterator[str]:
    for path in sorted((folder / below).iterdir()):
        if path.name.startswith(".") or path.is_symlink() or path.name in _NOT_LOOKED_INTO:
            continue
        if path.is_dir():
            yield from _files(folder, f"{below}{path.name}/")
        else:
            yield f"{below}{path.name}"


def _subject(task: PromptTask) -> str:
    return task.title[:1].lower() + task.title[1:] if task.title[1:2].islower() else task.title


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _is_of(word: str, words: tuple[str, ...]) -> bool:
    return word in words or word.removesuffix("s") in words or word.removesuffix("ed") in words
