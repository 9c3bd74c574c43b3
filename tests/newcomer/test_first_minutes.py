"""The first minutes of a new user: the user's repository, mistakes, a plan's approval, a merge, the page and HTTP.

Each step names the expected text on the screen.
"""

import re
from pathlib import Path

import httpx
import pytest
from fakes.newcomer import BODY, TITLE, Newcomer
from fakes.repositories import git
from fakes.terminal import terminal

pytestmark = pytest.mark.newcomer

PRIVATE = ("Traceback", "pydantic", "Input should be", "Value error", "wo-…")
"""Texts that no person may see: the insides of libraries, and placeholders in a command."""
MISTAKES = [
    (("fix the bug",), 2, "'fix the bug' was taken for a repository.", "--title 'fix the bug'"),
    (("--title", ""), 2, "--title is empty.", "Say in a few words"),
    (("--title", "T", "--base", "mian"), 3, "has no branch 'mian'.", "It has main."),
    (("--title", "T", "--after", "wo-nobody"), 2, "there is no work order wo-nobody", "septet list"),
    (("--issue", "99"), 3, "has no issue 99.", "septet issue add"),
    (("--issue-file", "nowhere.md"), 3, "--issue-file nowhere.md: No such file", ""),
    (("/nonexistent", "--title", "T"), 2, "/nonexistent does not exist.", "Give the path of a git repository"),
]


def test_septet_up_says_how_to_begin(newcomer: Newcomer) -> None:
    """The page's link has its own name, and `doctor` works and says that no agent CLI is ready."""
    assert httpx.URL(newcomer.septet.page).host.endswith(".localhost")
    ended = newcomer.septet("doctor")
    assert ended.code == 0
    assert "No agent CLI is ready yet" in ended.out


def test_an_issue_becomes_a_pull_request_on_ones_own_repository(newcomer: Newcomer, tmp_path: Path) -> None:
    """The id and the first step appear at once; at the end the pull request, and the command that merges it."""
    shop = newcomer.repository(tmp_path / "shop")
    words = ("run", "--title", TITLE, "--body", BODY, "--id", "wo-own", "--wait")
    with terminal(newcomer.septet, *words, cwd=shop) as screen:
        screen.until("wo-own started: shop  Fix the greeting")
        screen.until("classify_issue")
        screen.until("completed")
        code, rest = screen.end()
    assert code == 0, rest
    assert f"pull request  file://{shop}/pull/1" in rest
    assert "septet diff wo-own" in rest
    assert f"septet pr merge 1 --repo {shop}" in rest
    newcomer.up.until("wo-own is running: Fix the greeting")
    newcomer.up.until("wo-own is completed:")
    newcomer.up.until(f"file://{shop}/pull/1")

    assert "+greeting fixed" in newcomer.septet("diff", "wo-own").out
    shown = newcomer.septet("show", "wo-own").out
    assert f"repository    {shop}, from main" in shown
    log = newcomer.septet("logs", "wo-own").out
    assert re.search(r"\d\d:\d\d:\d\d  implement_plan · scripted", log)
    assert re.search(r"\d\d:\d\d:\d\d  Edit app.py\n {12}- .*Helo.*\n {12}\+ .*Hello.*\n", log), log
    merged = newcomer.septet("pr", "merge", "1", cwd=shop)
    assert merged.code == 0, merged
    assert (shop / "app.py").read_text(encoding="utf-8") == 'print("Hello")\n'
    newcomer.septet.wait_for("/board", lambda board: "wo-own" in [task["id"] for task in board["stages"]["done"]])
    assert "wo-own" in newcomer.septet("board").out.partition("done (")[2]


@pytest.mark.parametrize(("words", "code", "message", "remedy"), MISTAKES, ids=lambda value: str(value)[:40])
def test_a_mistake_is_told_in_plain_words(
    newcomer: Newcomer, tmp_path: Path, words: tuple[str, ...], code: int, message: str, remedy: str
) -> None:
    """The error comes before the start, names the mistake and what to type instead, and shows no library's insides."""
    shop = newcomer.repository(tmp_path / "shop")
    with terminal(newcomer.septet, "run", *words, cwd=shop) as screen:
        ended, painted = screen.end()
    painted = " ".join(painted.split())
    assert (ended, message in painted, remedy in painted) == (code, True, True), painted
    assert not [word for word in PRIVATE if word in painted]
    assert git(shop, "for-each-ref", "refs/septet") == ""


def test_a_plan_is_rejected_and_approved_at_the_terminal(newcomer: Newcomer, tmp_path: Path) -> None:
    """The plan is shown with its choices; after feedback it is planned again, and the approval is carried out."""
    shop = newcomer.repository(tmp_path / "shop")
    words = ("run", "--title", TITLE, "--body", BODY, "--id", "wo-gate", "--approve-plan", "--wait")
    with terminal(newcomer.septet, *words, cwd=shop) as screen:
        screen.until("Plan for wo-gate: specs/")
        screen.until("Steps")
        screen.until("[a]pprove  [r]eject with feedback  [e]dit")
        newcomer.up.until("wo-gate is waiting for your approval: septet approve wo-gate")
        screen.type("r")
        screen.until("What should the planner do differently?")
        screen.type("Write less.")
        screen.until("Plan rejected; the planner starts again with your feedback.")
        screen.until("[a]pprove")
        screen.type("a")
        screen.until("Plan approved.")
        code, rest = screen.end()
    assert (code, "create_pull_request" in rest) == (0, True)
