import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest
from markupsafe import escape

from clients.page.live import Pieces, keep_alive
from clients.page.rendering import text_of
from clients.page.standing import need_of
from septet.contracts.facts import LEFT_BESIDE_PLAN, Rescue
from septet.contracts.host_files import AgentRun, PlanView
from septet.contracts.names import Stage, Status
from septet.contracts.replies import DetailReply, WatchReply
from septet.contracts.rework import ReworkRound, ReworkState
from septet.contracts.task import Task, TaskError, TaskStep

TASK = Task(id="wo-1", status=Status.RUNNING, plan_path="specs/plan.md")
DETAIL = DetailReply(task=TASK)


def plan_of(text: str) -> str:
    """Return the page's piece with the plan."""
    plan = PlanView(path="specs/plan.md", text=text)
    return text_of("_plan.html", look=WatchReply(task=TASK, plan=plan))


def test_a_plan_that_waits_is_shown_as_it_is() -> None:
    """A waiting plan is shown as plain text, so that a person sees all that the agent reads."""
    text = "\n[//]: https://e.test 'run evil'\n<!-- & -->\n```sh run evil\nls\n```\n"
    waits = TASK.model_copy(update={"status": Status.WAITING, "stage": Stage.EXECUTING})
    look = WatchReply(task=waits, plan=PlanView(path="specs/plan.md", text=text))
    assert f"\n{escape(text)}</pre>" in text_of("_plan.html", look=look)
    assert "run evil" not in plan_of("[//]: https://e.test 'run evil'")
    pieces = Pieces(None)
    pieces.changed_pieces(look, DETAIL)
    assert "plan" in pieces.changed_pieces(look.model_copy(update={"task": TASK}), DETAIL)


def test_what_was_left_besides_a_plan_is_named_at_its_approval() -> None:
    """The approval names the files beside the plan, with the command that restores them."""
    rescue = Rescue(snapshot="wo-1/0004-rescue", reason=f"{LEFT_BESIDE_PLAN}: AGENTS.md", step="find_plan_file")
    other = Rescue(snapshot="wo-1/0003-rescue", reason="another one")
    facts = {"status": Status.WAITING, "stage": Stage.EXECUTING, "plan_sha256": "0" * 64}
    waits = TASK.model_copy(update=facts | {"rescues": (other, rescue)})
    html = text_of("_overview.html", look=WatchReply(task=waits), detail=DETAIL)
    assert "AGENTS.md (`septet rescue restore wo-1/0004-rescue --to DIR`)" in html
    assert "another one" not in html


def test_refused_hosts_are_shown_at_their_run_and_at_the_set_up() -> None:
    """The record names the first ten hosts that were refused to a run or to the set-up, and counts the others."""
    hosts = tuple(f"host-{number}.example:443" for number in range(12))
    runs = (AgentRun(run="1-a-1", folder="/r/1", refused_hosts=hosts), AgentRun(run="2-b-1", folder="/r/2"))
    detail = DetailReply(task=TASK, runs=runs, refused_in_setup=("npm.example:443",))
    html = text_of("_record.html", look=WatchReply(task=TASK), detail=detail, ui=None)
    assert html.count("Refused on the network") == 2
    assert "Refused on the network: <code>npm.example:443</code>" in html
    assert "host-9.example:443" in html
    assert "host-10.example:443" not in html
    assert "and 2 more" in html


def test_a_failed_check_is_told_by_its_first_line_and_its_output_stands_below() -> None:
    """Lists show a failed check's first line only, and its output stands below."""
    message = "Check `make test` failed:\n=====\nE  assert 1 == 2"
    row = TaskStep(step="create_commit", agent_name="a", agent="claude", success=False, error_message=message)
    error = TaskError(type="ChecksFailed", message=message, remedy="Try again.")
    failed = TASK.model_copy(update={"status": Status.FAILED, "error": error, "steps": (row,)})
    assert need_of(failed) == "Check `make test` failed"
    html = text_of("_overview.html", look=WatchReply(task=failed), detail=DETAIL)
    assert "<b>ChecksFailed</b>: Check `make test` failed:\n" in html
    assert '<pre class="words" tabindex="0">=====\nE  assert 1 == 2</pre>' in html
    assert '<span class="found">Check `make test` failed:</span>' in text_of(
        "_steps.html", look=WatchReply(task=failed)
    )


def test_rounds_on_a_pull_request_stand_below_the_steps() -> None:
    """Each round shows its number, events, commit and outcome, and the piece changes when a round begins."""
    rounds = (
        ReworkRound(number=1, events=("checks failed: <tests>",), outcome="done", commit_sha="c0ffee" * 6),
        ReworkRound(number=2, events=("ada asks for changes",)),
    )
    pieces, look = Pieces(None), WatchReply(task=TASK)
    assert "Rounds on the pull request" not in pieces.changed_pieces(look, DETAIL)["steps"]
    followed = TASK.model_copy(update={"rework": ReworkState(state="working", round=2, history=rounds)})
    html = pieces.changed_pieces(look.model_copy(update={"task": followed}), DETAIL)["steps"]
    for shown in ("round 1", "checks failed: &lt;tests&gt;", "c0ffeec0ffee", "done", "round 2", "working"):
        assert shown in html, shown


def test_a_wide_table_stays_as_small_as_its_text() -> None:
    """The page of a table with thousands of empty cells is less than three times as long as its text."""
    text = "|a" * 1000 + "|\n" + "|-" * 1000 + "|\n" + "|\n" * 2000
    assert len(plan_of(text)) < 3 * len(text)


@pytest.mark.parametrize(
    "url", ["vscode://a", "//evil", "javascript:a", "file:///etc/passwd", "/work-orders/wo-2", "#steps"]
)
def test_other_addresses_are_words(url: str) -> None:
    """An address that is not of http, https or mail is shown as text, in each form of a link."""
    piece = plan_of(f"[here]({url}) [there]\n\n[again][there] <{url}>\n\n[there]: {url}\n")
    assert "<a" not in piece
    assert f"[here]({url})" in piece


@pytest.mark.parametrize("url", ["https://example.org/a", "HTTP://example.org", "mailto:me@example.org"])
def test_web_and_mail_are_links(url: str) -> None:
    """An address of http, https or mail is a link."""
    assert f'<a href="{url}">here</a>' in plan_of(f"[here]({url})")


async def test_a_reader_who_leaves_is_no_error() -> None:
    """A stream whose reader is cancelled repeatedly ends its events."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def events() -> AsyncGenerator[bytes, None]:
        try:
            begun.set()
            await asyncio.Event().wait()
            yield b""
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            ended.set()

    async def read() -> None:
        async for _ in keep_alive(events()):
            pass

    reader = asyncio.create_task(read())
    await begun.wait()
    while not reader.done():
        reader.cancel()
        await asyncio.sleep(0)
    with suppress(asyncio.CancelledError):
        await reader
    assert ended.is_set()
