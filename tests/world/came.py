"""The outcome of a case, and its differences from the expected outcome."""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakes.repositories import git
from world.case import Branch, Case, Count, Words


@dataclass
class Came:
    case: Case
    origin: Path
    env: Mapping[str, str]
    """The environment of the case's own commands."""
    begun_at: str
    """The commit of the base at the beginning."""
    out: str = ""
    """The output of `septet run`, or of a person's last command after it."""
    answer: dict[str, Any] = field(default_factory=dict)
    """`out` as JSON."""
    task: dict[str, Any] = field(default_factory=dict)
    status: str = "none"
    shown: str = ""
    """The output of `septet show`."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """The starts of the CLI, in order."""
    pulls: list[dict[str, Any]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    """The labels of the issue."""
    asked: list[str] = field(default_factory=list)
    """The requests to the forge: method and path."""
    waits: float | None = None
    """The seconds until the step is tried again; `None` if the step does not wait."""
    rescues: list[Path] = field(default_factory=list)
    """The folders of the restored rescues."""

    @property
    def error(self) -> dict[str, str]:
        return self.task.get("error") or self.answer.get("error") or {}

    @property
    def steps(self) -> list[dict[str, Any]]:
        return self.task.get("steps") or []

    @property
    def warnings(self) -> list[str]:
        return [words for step in self.steps for words in step["warnings"]]

    def told(self) -> str:
        starts = " ".join(
            each["step"] + (f"({each['of']})" if each["of"] else "") + ("*" if each["resumed"] else "")
            for each in self.calls
        )
        steps = (
            f"  {step['step']}: {step['parsed_by']}, try {step['attempts']}, {step['output']!r:.120} {list(step['warnings'])}"
            for step in self.steps
        )
        lines = (
            f"{self.status}, next try in {self.waits} s; starts (* resumed): {starts}",
            *steps,
            f"error: {self.error}",
            f"pulls: {self.pulls}",
        )
        return "\n".join((*lines, f"stdout: {self.out[-400:]}" if not self.answer else ""))


def differences(came: Came) -> list[str]:
    found = [*_of_end(came), *_of_steps(came), *_of_turns(came), *_of_pulls(came), *_of_branch(came)]
    found += [
        f"the issue has lost the label {label}" for label in came.case.expect.labels if label not in came.labels
    ]
    for pattern in came.case.expect.not_asked:
        found += [f"the forge was asked {asked!r}" for asked in came.asked if re.search(pattern, asked)][:1]
    return [*found, *_of_rescues(came), *_of_check(came)]


def _of_end(came: Came) -> Iterator[str]:
    expect = came.case.expect
    if not came.answer:
        yield f"stdout is not one JSON object: {came.out[:200]!r}"
    wanted = (expect.status,) if isinstance(expect.status, str) else expect.status
    if came.status not in wanted:
        yield f"the status is {came.status}, not {' or '.join(wanted)}: {came.error.get('message', '')}"
    if expect.error is not None and came.status != "completed":
        if expect.error.type not in {None, came.error.get("type")}:
            yield f"the error is a {came.error.get('type')}, not a {expect.error.type}"
        yield from _words(came, "the error", came.error.get("message", ""), expect.error)
        yield from _words(came, "the remedy", came.error.get("remedy", ""), Words(says=expect.error.remedy))
    if expect.waits is not None and not (came.waits and expect.waits[0] <= came.waits <= expect.waits[1]):
        yield f"the next try is {came.waits} seconds away, not {expect.waits}"
    yield from _words(came, "the warnings", "\n".join(came.warnings), Words(says=expect.warnings))
    yield from _words(came, "`septet show`", came.shown, Words(says=expect.shows))


def _of_steps(came: Came) -> Iterator[str]:
    ended = {step["step"]: step for step in came.steps}
    for name, expected in came.case.expect.steps.items():
        step = ended.get(name)
        if step is None:
            yield f"there is no step {name}"
            continue
        for key in ("output", "parsed_by"):
            if getattr(expected, key) not in {None, step[key]}:
                yield f"{key} of {name} is {step[key]!r}, not {getattr(expected, key)!r}"
        warnings = list(step["warnings"])
        if expected.warnings == () and warnings:
            yield f"{name} warns: {warnings}"
        yield from _words(
            came, f"the warnings of {name}", "\n".join(warnings), Words(says=expected.warnings or ())
        )


def _of_turns(came: Came) -> Iterator[str]:
    expect = came.case.expect
    for step, count in expect.starts.items():
        calls = [call for call in came.calls if call["step"] == step]
        yield from _counted(f"starts of {step}", len(calls), count)
    for step, count in expect.sessions.items():
        sessions = {call["session"] for call in came.calls if call["step"] == step}
        yield from _counted(f"sessions of {step}", len(sessions), count)
    if expect.finalizers is not None:
        calls = [call for call in came.calls if call["step"] == "finalizer"]
        yield from _counted("finalizers", len(calls), expect.finalizers)
    for step, words in expect.argv.items():
        calls = [call for call in came.calls if call["step"] == step]
        if not calls:
            yield f"{step} was not started"
        for call in calls:
            missing = [word for word in words if not any(word in part for part in call["argv"])]
            yield from [f"a start of {step} does not name {missing}: {call['argv']}"] if missing else []


def _of_pulls(came: Came) -> Iterator[str]:
    expect = came.case.expect
    wanted: Count | None = expect.pull_requests
    if wanted is None and expect.status == "completed":
        wanted = 1
    if wanted is not None:
        yield from _counted("pull requests", len(came.pulls), wanted)
    for pull in came.pulls[:1]:
        yield from _words(came, "the title", pull["title"], expect.pull.title)
        yield from _words(came, "the body", pull["body"], expect.pull.body)
        if expect.pull.title_at_most is not None and len(pull["title"]) > expect.pull.title_at_most:
            yield f"the title has {len(pull['title'])} characters"
        if expect.pull.base not in {None, pull["base"]}:
            yield f"its base is {pull['base']}"


def _of_branch(came: Came) -> Iterator[str]:
    base = _sha(came, "main")
    stands = "deleted" if not base else "as it was" if base == came.begun_at else "moved"
    if stands != came.case.expect.base:
        yield f"the base is {stands}"
    odd = [ref for ref in _git(came, "for-each-ref", "--format=%(refname)").split() if ref.count("refs/") > 1]
    if odd:
        yield f"there is {odd}"
    expected = came.case.expect.branch
    if expected is None:
        return
    name = came.task.get("branch_name") or ""
    if not name or not _sha(came, name):
        yield f"no branch was pushed (it is called {name!r})"
        return
    yield from _of_tree(came, name, expected)


def _of_tree(came: Came, name: str, expected: Branch) -> Iterator[str]:
    if expected.name not in {None, name}:
        yield f"the branch is called {name}"
    for path, text in expected.files.items():
        held = _git(came, "cat-file", "blob", f"{name}:{path}", check=False)
        if held != text.strip():
            yield f"{path} on the branch holds {held[:200]!r}"
    paths = set(_git(came, "ls-tree", "-r", "-z", "--name-only", name).split("\0"))
    yield from (f"{path} is not on the branch" for path in expected.has if path not in paths)
    yield from (f"{path} is on the branch" for path in expected.lacks if path in paths)
    changed = _git(came, "diff", "--name-only", "-z", f"{came.begun_at}...{name}").split("\0")
    if expected.changed is not None and {*expected.changed} != {path for path in changed if path}:
        yield f"the branch changes {changed}"
    if expected.commits is not None:
        count = int(_git(came, "rev-list", "--count", f"main..{name}"))
        yield from _counted("commits", count, expected.commits)
    message = _git(came, "log", "-1", "--format=%B", name)
    yield from _words(came, "the commit's message", message, Words(says=expected.message))


def _of_rescues(came: Came) -> Iterator[str]:
    for path, text in came.case.expect.kept.items():
        held = [folder / path for folder in came.rescues if (folder / path).is_file()]
        if not any(file.read_text(encoding="utf-8", errors="replace") == text for file in held):
            yield f"no rescue of {len(came.rescues)} has {path}"


def _of_check(came: Came) -> Iterator[str]:
    if not came.case.expect.check:
        return
    told = {"BRANCH": came.task.get("branch_name") or "", "BASE": came.begun_at, "STATUS": came.status}
    told |= {
        name: _without_name(came, came.error.get(key, ""))
        for name, key in (("ERROR", "message"), ("REMEDY", "remedy"))
    }
    argv = ["bash", "-euc", came.case.expect.check]
    ended = subprocess.run(
        argv, cwd=came.origin, env={**came.env, **told}, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        yield f"the check ended with {ended.returncode}: {ended.stdout[-300:]} {ended.stderr[-300:]}"


def _words(came: Came, where: str, text: str, words: Words) -> Sequence[str]:
    text = _without_name(came, text)
    missing = [
        f"{where} does not say {word!r}: {text[:300]!r}"
        for word in words.says
        if _without_name(came, word) not in text
    ]
    return [*missing, *(f"{where} says {word!r}" for word in words.lacks if word in text)]


def _without_name(came: Came, text: str) -> str:
    """Return a text without the case's own name, which may contain an expected word."""
    return text.replace(came.case.order, "the-order").replace(came.case.name or came.case.order, "the-case")


def _counted(what: str, count: int, wanted: Count) -> Sequence[str]:
    least, most = (wanted, wanted) if isinstance(wanted, int) else wanted
    return [] if least <= count <= most else [f"there are {count} {what}, not {wanted}"]


def _git(came: Came, *args: str, check: bool = True) -> str:
    return git(came.origin, "-c", "safe.directory=*", *args, check=check)


def _sha(came: Came, branch: str) -> str:
    return _git(came, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", check=False)
