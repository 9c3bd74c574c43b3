import re

import pytest
from rich.console import Console

from clients.cli.render import board as board_tables
from clients.cli.render import work_order
from clients.cli.render.detail import show_detail, show_steps
from clients.cli.render.logs import show_refusals
from clients.operations.under_way import StepUnderWay
from clients.page.rendering import text_of
from septet.contracts.facts import Rescue, Usage
from septet.contracts.host_files import AgentRun, LogEntry
from septet.contracts.names import Stage, Status
from septet.contracts.replies import BoardReply, BoardSummary, DetailReply, WatchReply
from septet.contracts.task import Task, TaskError, TaskStep

LONG_URL = f"https://github.com/{'o' * 100}/r/pull/1"
STEPS = (
    TaskStep(
        step="build_plan", agent_name="planner", agent="claude", success=True, output="specs/[bold]plan.md\nmore",
        duration_seconds=1.25, usage=Usage(input_tokens=1200, output_tokens=34), parsed_by="json",
        recovered_by="finalizer", attempts=2,
    ),
    TaskStep(step="implement_plan", agent_name="implementor", agent="claude", success=False, error_message="It broke."),
)  # fmt: skip
TASK = Task(
    id="wo-1",
    project="o/r",
    title="Totals",
    status=Status.FAILED,
    issue_number="7",
    pr_url=LONG_URL,
    commit_sha="c0ffee" * 7,
    branch_name="bug-7",
    rescues=(Rescue(snapshot="wo-1/0003-rescue", reason="a crash", patch="/state/rescue.patch"),),
    error=TaskError(type="AgentGaveUp", message="It crashed.", remedy="septet retry wo-1"),
    steps=STEPS,
)


def test_a_work_order_is_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """Status, steps, pull request, commit, rescue with its patch, error and remedy are printed."""
    work_order.show_task(TASK)
    printed = capsys.readouterr().out
    assert f"pull request  {LONG_URL}" in printed.splitlines()
    for words in ("wo-1", "o/r #7", "failed", "build_plan", "specs/[bold]", "1,234", "1.2 s", "asked again", "It broke.",
                  "c0ffeec0ffee on bug-7", "wo-1/0003-rescue: a crash", "/state/rescue.patch",
                  "AgentGaveUp: It crashed.", "septet retry wo-1"):  # fmt: skip
        assert words in printed


def test_the_tokens_of_the_steps_add_up_to_those_of_the_work_order(capsys: pytest.CaptureFixture[str]) -> None:
    """The steps' tokens and the work order's include the cache, also on the page."""
    usage = Usage(input_tokens=100, output_tokens=80, cache_read_tokens=8000, cache_write_tokens=456)
    task = TASK.model_copy(update={"steps": (STEPS[0].model_copy(update={"usage": usage}),), "usage": usage})
    show_detail(DetailReply(task=task))
    printed = capsys.readouterr().out
    assert "tokens        8,636, cost unknown" in printed.splitlines()
    row = next(line for line in printed.splitlines() if line.startswith("✓  build_plan"))
    assert "8,636" in row.split()
    assert "8,636 tokens" in text_of("_steps.html", look=WatchReply(task=task))
    show_steps(task.steps)
    assert "100 in, 80 out, 8,000 from the cache, 456 to the cache" in capsys.readouterr().out


@pytest.mark.parametrize("stuck", [None, "Its workflow task fails: no such step."])
def test_a_plan_of_which_no_worker_tells_is_not_known(
    capsys: pytest.CaptureFixture[str], stuck: str | None
) -> None:
    """A plan that no worker has reported is shown as not known, unless the work order is stuck."""
    row = Task(id="wo-1", status=Status.WAITING, stage=Stage.EXECUTING, stuck=stuck)
    work_order.show_task(row)
    show_detail(DetailReply(task=row))
    printed = capsys.readouterr().out
    assert "None" not in printed
    assert printed.count("plan          not known: no worker has answered") == (0 if stuck else 2)


def test_what_is_seen_of_the_step_under_way_is_in_its_row() -> None:
    """The running step's row shows its state, the tool call and the tokens so far."""
    call = LogEntry(
        id="1/1", run="1", step="implement_plan", agent="claude", kind="tool_call", tool="Bash",
        text='{"command": "[a]"}',
    )  # fmt: skip
    out = Console(width=120)
    with out.capture() as shown:
        out.print(work_order.steps_table((), StepUnderWay("implement_plan", "nobody works on it", 12_345, call)))
    told = shown.get().splitlines()[-1].split()
    assert told == ["…", "implement_plan", "nobody", "works", "on", "it:", "$", "[a]", "12,345"]


def board(*tasks: Task, stage: Stage = Stage.EXECUTING, in_all: int = 0) -> BoardReply:
    stages = {each: tasks if each is stage else () for each in Stage}
    counts = {each: max(len(found), in_all if each is stage else 0) for each, found in stages.items()}
    return BoardReply(stages=stages, counts=counts, summary=BoardSummary(total=len(tasks)))


def painted(board: BoardReply, width: int) -> list[str]:
    """Return the board's lines in a terminal of this width."""
    out = Console(width=width)
    with out.capture() as shown:
        out.print(board_tables.board_view(board))
    return shown.get().splitlines()


def test_the_board_tells_what_a_person_moved_to_blocked_from_what_was_closed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A blocked work order shows its reason, and the board's last line names the next page."""
    moved = TaskError(type="Blocked", message="wait for Ann", remedy="")
    closed = TaskError(type="PullRequestClosed", message="It was closed.", remedy="")
    long = {"title": "Totals " * 40, "status": Status.COMPLETED, "stage": Stage.BLOCKED}
    in_review = TASK.model_copy(update=long)
    tasks = [in_review.model_copy(update={"error": error}) for error in (moved, closed)]
    shown = board(*tasks, stage=Stage.BLOCKED).model_copy(update={"next": "abc"})
    board_tables.show_board(shown)
    *_, first, second, more = capsys.readouterr().out.splitlines()
    assert ("  blocked  " in first, first.endswith(f"{LONG_URL}  wait for Ann")) == (True, True)
    assert ("  closed  " in second, second.endswith(LONG_URL)) == (True, True)
    assert more == "There are more: add --after abc"


def test_the_board_has_the_reason_of_a_failure() -> None:
    """The reason of a failure stands in place of the pull request, and is cut to the terminal's width."""
    reason = "The plan's file specs/plan.md does not exist.\nsecond line"
    failed = TASK.model_copy(update={"pr_url": "", "error": TaskError(type="Proof", message=reason)})
    (row,) = (line for line in painted(board(failed), 100) if "wo-1" in line)
    assert row.rstrip().endswith("failed  The plan's file specs/plan.md does not exist.")
    assert max(map(len, painted(board(failed), 40))) <= 40


def test_a_stage_says_how_many_are_not_shown() -> None:
    """A stage with more work orders than the page holds counts the others."""
    lines = painted(board(TASK, in_all=1200), 100)
    assert "executing (1,200)" in lines
    assert "  and 1,199 more" in lines


def test_what_holds_a_work_order_up_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters in a wait's reason or a rescue's reason do not reach the terminal."""
    rescue = Rescue(snapshot="wo-1/0003-rescue", reason="\x1b]0;evil\x07 check")
    work_order.show_task(TASK.model_copy(update={"rescues": (rescue,)}), waits="a \x1b[2J slot")
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\x07" not in printed
    assert "slot" in printed


def test_refused_hosts_are_one_line_with_the_command_that_shows_all(capsys: pytest.CaptureFixture[str]) -> None:
    """Five refused hosts, the number of the others and the command are one line, which needs a host."""
    run = AgentRun(run="1-a-1", folder="/r", refused_hosts=tuple(f"h{number}:443" for number in range(7)))
    show_detail(DetailReply(task=TASK, runs=(run, run)))
    line = "refused hosts h0:443, h1:443, h2:443, h3:443, h4:443 and 2 more  (septet logs wo-1 --network)"
    assert line in capsys.readouterr().out.splitlines()
    show_detail(DetailReply(task=TASK, refused_in_setup=("npm.example:443",), runs=(run,)))
    assert "refused hosts npm.example:443, h0:443" in capsys.readouterr().out
    show_refusals("wo-1", ())
    assert capsys.readouterr().out == ""


def test_checks_that_passed_are_told_and_what_was_usual_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    """The number of passed checks is one line, and a usual answer has no note."""
    row = STEPS[0].model_copy(
        update={"step": "create_commit", "parsed_by": "json", "recovered_by": None, "checks_passed": 2}
    )
    task = TASK.model_copy(update={"steps": (row,), "error": TaskError(type="Cancelled", message="Stopped.")})
    show_detail(DetailReply(task=task))
    show_steps(task.steps)
    printed = capsys.readouterr().out
    assert "checks        2 passed before the commit" in printed.splitlines()
    assert "  checks    2 passed before the commit" in printed.splitlines()
    page = text_of("_steps.html", look=WatchReply(task=task))
    assert "2 checks passed" in page
    assert "read" not in printed + page
    assert printed.partition("Cancelled: Stopped.\n")[2][:1] != "\n"


def test_a_run_that_was_killed_before_it_told_its_cost_is_no_known_zero(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The cost of a killed run is unknown; beside a known cost the sum is a minimum."""
    killed, free, paid = Usage(input_tokens=4000), Usage(cost_usd=0.0), Usage(output_tokens=10, cost_usd=0.25)
    costs = {
        "cost unknown": killed.plus(free),
        "at least 0.25 USD": paid.plus(killed),
        "0.25 USD": paid.plus(Usage()),
    }
    for words, usage in costs.items():
        row = STEPS[0].model_copy(update={"usage": usage})
        task = TASK.model_copy(update={"steps": (row,), "usage": usage})
        show_detail(DetailReply(task=task))
        show_steps([row])
        printed = capsys.readouterr().out
        assert f"tokens        {usage.tokens:,}, {words}" in printed.splitlines()
        assert re.search(rf"^  tokens    .* out, {words}$", printed, re.MULTILINE)
        assert words in text_of("_steps.html", look=WatchReply(task=task))
