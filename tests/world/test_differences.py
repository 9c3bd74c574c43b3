"""The runner reports each difference: without these tests a broken runner would accept every case."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.repositories import git, make_origin
from pydantic import ValidationError
from world.came import Came, differences
from world.case import Case

_RIGHT = """
status = ["completed", "failed"]
warnings = ["a hint"]
shows = ["wo-x"]
waits = [10, 20]
steps.build_plan = { output = "p.md", parsed_by = "json", warnings = ["hint"] }
starts = { build_plan = 1 }
sessions = { build_plan = [1, 2] }
finalizers = 1
argv = { build_plan = ["opus"] }
branch = { name = "b", files = { "new.txt" = "new" }, has = ["new.txt"], lacks = ["old.txt"], changed = ["new.txt"], commits = 1, message = ["change"] }
pull = { title = { says = ["add"] }, body = { lacks = ["#5"] }, title_at_most = 9, base = "main" }
labels = ["bug"]
kept = { "new.txt" = "new" }
not_asked = ["DELETE"]
check = 'test "$STATUS" = completed'
"""
_WRONG = (
    'status = "failed"', 'warnings = ["other"]', 'shows = ["other"]', "waits = [0, 1]",
    'steps.build_plan = { output = "q.md" }', 'steps.build_plan = { parsed_by = "plain" }',
    "steps.build_plan = { warnings = [] }", "steps.rework = { }", "starts = { build_plan = 2 }",
    "sessions = { build_plan = [2, 3] }", "finalizers = 0", 'argv = { build_plan = ["haiku"] }',
    'argv = { rework = ["opus"] }', 'branch = { name = "c" }', 'branch = { files = { "new.txt" = "old" } }',
    'branch = { has = ["old.txt"] }', 'branch = { lacks = ["new.txt"] }', 'branch = { changed = ["a.txt"] }',
    "branch = { commits = 2 }", 'branch = { message = ["fix"] }', "pull_requests = 0",
    'pull = { title = { says = ["remove"] } }', 'pull = { body = { lacks = ["body"] } }', "pull = { title_at_most = 2 }",
    'pull = { base = "release-1" }', 'labels = ["wish"]', 'kept = { "new.txt" = "old" }',
    'not_asked = ["POST"]', 'check = "exit 3"', 'base = "moved"',
)  # fmt: skip


def _case(expect: str) -> Case:
    words = {"source": "s", "happens": "h", "expects": "e", "expect": tomllib.loads(expect)}
    return Case.model_validate(words)


def _came(folder: Path, expect: str) -> Came:
    origin = make_origin(folder)
    begun_at = origin.push({"a.txt": "a"})
    origin.push({"new.txt": "new"}, branch="b")
    step = {"step": "build_plan", "output": "p.md", "parsed_by": "json", "warnings": ["a hint"], "attempts": 1}
    call = {"step": "build_plan", "of": "", "session": "1", "resumed": "", "argv": ["--model", "opus"]}
    return Came(
        _case(expect), origin.bare, {}, begun_at, out="{}", answer={"ok": True}, status="completed",
        task={"branch_name": "b", "steps": [step]}, shown="wo-x", waits=15.0, labels=["bug"], asked=["POST /o/r/pulls"],
        calls=[call, {**call, "step": "finalizer", "of": "build_plan", "session": "1"}], rescues=[origin.checkout],
        pulls=[{"title": "add", "body": "a body", "base": "main", "draft": False}],
    )  # fmt: skip


def test_what_comes_out_as_expected_has_no_differences(tmp_path: Path) -> None:
    """An outcome that meets each kind of expectation has no difference."""
    assert differences(_came(tmp_path, _RIGHT)) == []


def test_each_kind_of_difference_is_told(tmp_path: Path) -> None:
    """Each wrong expectation gives exactly one difference."""
    came = _came(tmp_path, "")
    told = {wrong: differences(replace(came, case=_case(wrong))) for wrong in _WRONG}
    assert {wrong: len(found) for wrong, found in told.items()} == dict.fromkeys(_WRONG, 1)


def test_a_key_that_nobody_knows_is_an_error() -> None:
    """An unknown key is an error, for a misspelled expectation would check nothing."""
    with pytest.raises(ValidationError):
        _case('statsu = "failed"')


def test_a_base_that_has_moved_is_told(tmp_path: Path) -> None:
    """A moved base is a difference, though the case does not mention the base."""
    came = _came(tmp_path, "")
    git(came.origin, "update-ref", "refs/heads/main", "b")
    assert differences(came) == ["the base is moved"]
