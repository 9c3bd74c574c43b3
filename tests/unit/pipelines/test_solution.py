"""The check of a solution: complete, consistent, correct and clear."""

from pathlib import Path
from typing import Any

import pytest
from fakes.solutions import PLAN, solution, task

from septet.contracts.solution import SOLUTION_LIMIT_BYTES
from septet.pipelines.solution import IssueScope, findings, findings_text


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    """Return a worktree with a program, and with symlinks inside and out of the worktree."""
    root = tmp_path / "tree"
    (root / "src").mkdir(parents=True)
    (root / "src/app.py").write_text("x\n", encoding="utf-8")
    (root / "away").symlink_to(tmp_path)
    (root / "git").symlink_to(root / ".git")
    (root / "near").symlink_to("src")
    (root / "loop").symlink_to("loop")
    return root


def judged(worktree: Path, *tasks: dict[str, Any], **changes: Any) -> tuple[str, ...]:
    return findings(solution(*tasks, **changes), IssueScope("7", PLAN, worktree))


def test_a_good_solution_has_no_findings(worktree: Path) -> None:
    """A solution with ordered tasks, new files, any valid scope and an inner symlink has no findings."""
    tasks = (
        task("T1"),
        task("T2", "src/new/deep.py", depends_on=["T1"]),
        task("T3", "docs/a.md", scope="docs/a.md", depends_on=["T1", "T2"]),
        task("T4", "near/b.py", scope="."),
        task("T5", "./src//c.py", scope="src/"),
    )
    assert judged(worktree, *tasks) == ()
    assert judged(worktree, id="SOL-7-2") == ()


@pytest.mark.parametrize(
    ("tasks", "changes", "words"),
    [
        ((), {"id": "SOL-8"}, "id is 'SOL-8': it is 'SOL-7'"),
        ((task("T1"), task("T1", "src/b.py", title="Another")), {}, "the id 'T1' is there more than once"),
        ((task("T1", title="Do it now"), task("T2", title="do it  now.")), {}, "the title 'do it now'"),
        ((task(depends_on=["T9"]),), {}, "task T1: depends_on names 'T9', which is not a task"),
        (
            (task("A", depends_on=["C"]), task("B", depends_on=["A"]), task("C", depends_on=["B"])),
            {},
            "in a circle (A after C after B after A)",
        ),
        ((task(acceptance=[]),), {}, "task T1: acceptance is empty"),
        ((task(acceptance=["It works!"]),), {}, "acceptance 'It works!' is vague"),
        ((task(title="Add up", acceptance=["add up."]),), {}, "acceptance repeats the title"),
        ((task(modification_points=[]),), {"predicted_files": ["a"]}, "modification_points is empty"),
        ((task(implementation=[]),), {}, "implementation is empty"),
        ((task(scope="../src"),), {}, "scope '../src' has `..` in it"),
        ((task(scope=".git/hooks"),), {}, "scope '.git/hooks' is git's own"),
        ((task(scope="sub/.GIT"),), {}, "is git's own"),
        ((task(scope="away/x"),), {}, "points outside the repository through a symlink"),
        ((task(scope="git"),), {}, "points outside the repository through a symlink"),
        ((task("T1", "/etc/passwd"),), {}, "modification point '/etc/passwd' is absolute"),
        ((task("T1", "docs/a.md"),), {}, "'docs/a.md' is outside its scope 'src'"),
        ((task("T1", "srcs/a.md"),), {}, "'srcs/a.md' is outside its scope 'src'"),
        ((task(),), {"predicted_files": ["src/b.py"]}, "'src/app.py' is not among predicted_files"),
        ((task(),), {"predicted_files": ["src/app.py", "./src/app.py"]}, "'src/app.py' is there more than once"),
        ((task(),), {"predicted_files": ["src/app.py", PLAN]}, "is the plan's own file: leave it out"),
        ((task(),), {"predicted_files": ["src/app.py", "src"]}, "'src' is a folder: name the files"),
        ((task(),), {"predicted_files": ["src/app.py", "away/x"]}, "'away/x' points outside"),
        ((task(),), {"predicted_files": ["src/app.py", "x" * 4000]}, "is a name that no file can have"),
    ],
)
def test_a_finding_names_place_and_remedy(
    worktree: Path, tasks: tuple[dict[str, Any], ...], changes: dict[str, Any], words: str
) -> None:
    """Each mistake is one finding on one line, with the place before the colon and the remedy after it."""
    found = judged(worktree, *tasks, **changes)
    assert [words in finding for finding in found].count(True) == 1, found
    assert all(": " in finding and "\n" not in finding for finding in found)


def test_all_findings_are_told_at_once(worktree: Path) -> None:
    """All findings appear at once, since the planner has only one more attempt."""
    found = judged(worktree, task(acceptance=[], implementation=[], scope="docs"), id="x")
    assert len(found) == 4
    assert findings_text(found).startswith("The solution has 4 findings:\n- id is 'x'")
    assert all(finding in findings_text(found) for finding in found)


def test_many_findings_stay_within_a_steps_reason(worktree: Path) -> None:
    """A hundred findings become a text of at most 1500 bytes that counts the rest."""
    found = judged(worktree, *(task(f"T{number}", acceptance=[]) for number in range(100)))
    assert len(found) == 100
    assert len(findings_text(found).encode()) <= 1500
    assert "more of these kinds" in findings_text(found)


def test_a_solution_is_bounded(worktree: Path) -> None:
    """A solution over the size limit is a finding."""
    long = task(implementation=["x" * 60_000] * 6)
    assert f"{SOLUTION_LIMIT_BYTES} are allowed" in judged(worktree, long)[0]
