from rich.console import Console

from clients.cli.render.watch import WatchLines, WatchPicture
from clients.operations.under_way import elapsed_seconds
from septet.contracts.facts import Usage
from septet.contracts.host_files import ChangedFile, DiffView, LogEntry, PlanView
from septet.contracts.names import Status
from septet.contracts.replies import WatchReply
from septet.contracts.task import Task, TaskStep

STEP = TaskStep(
    step="build_plan",
    agent_name="planner",
    agent="claude",
    success=True,
    output="specs/plan.md",
    duration_seconds=2,
)
TASK = Task(id="wo-1", title="Totals", status=Status.RUNNING, created_at="2025-01-01T00:00:00.000Z")
CALL = LogEntry(
    id="5-implement_plan-1/2", run="5-implement_plan-1", step="implement_plan", agent="claude", kind="tool_call",
    tool="Edit", text="shop.py\x1b[2J",
)  # fmt: skip
PLANNED = LogEntry(
    id="2-build_plan-1/1", run="2-build_plan-1", step="build_plan", agent="claude", kind="text", text="I plan."
)
PATCH = "diff --git a/shop.py b/shop.py\n--- a/shop.py\n+++ b/shop.py\n@@ -1 +1 @@\n-old\n+new\x1b[2J\n"
LOOK = WatchReply(
    task=TASK.model_copy(update={"steps": (STEP,), "usage": Usage(cost_usd=0.5)}),
    running_step="implement_plan",
    doing=CALL,
    tokens=1234,
    cost_usd=0.5,
    plan=PlanView(path="specs/plan.md", text="# Plan\n\n1. Do it.\n" + "more\n" * 20),
    diff=DiffView(files=(ChangedFile(path="shop.py", added=1, removed=1),), patch=PATCH),
    log_entries=(CALL, PLANNED),
)


def painted(look: WatchReply, height: int = 40) -> str:
    """Return the output in a terminal of this height."""
    out = Console(width=100, height=height, force_terminal=True, color_system=None)
    picture = WatchPicture()
    picture.take(look)
    with out.capture() as shown:
        out.print(picture)
    return shown.get()


def test_a_picture_tells_what_goes_on() -> None:
    """The picture shows steps, tool call, tokens, cost, the plan's first lines and the changes."""
    shown = painted(LOOK)
    for words in ("wo-1", "build_plan", "implement_plan · Edit shop.py", "tokens 1,234", "cost 0.50 USD", "# Plan",
                  "… 16 more lines", "1 file changed, +1 -1", "-old", "+new"):  # fmt: skip
        assert words in shown


def test_what_an_agent_wrote_moves_no_cursor() -> None:
    """Control characters in a tool call, patch or title are replaced, in the picture and in lines."""
    assert "\x1b" not in painted(LOOK)
    assert "\x1b" not in "".join(WatchLines().new_lines(LOOK))


def test_what_a_work_order_waits_for_is_said() -> None:
    """The reason for a wait stands in place of the tool call."""
    look = LOOK.model_copy(update={"waiting_for": "implement_plan: the disk is full"})
    assert "Waiting for implement_plan: the disk is full" in painted(look)
    assert "Waiting for implement_plan: the disk is full" in list(WatchLines().new_lines(look))


def test_lines_tell_each_thing_once_and_in_order() -> None:
    """An agent's text comes before its step's end, and no line repeats."""
    lines = WatchLines()
    assert [line.split(":")[0] for line in lines.new_lines(LOOK)] == [
        "wo-1 Totals", "    I plan.", "✓ build_plan 2.0 s", "… implement_plan", "    Edit shop.py�[2J",
    ]  # fmt: skip
    assert list(lines.new_lines(LOOK.model_copy(update={"log_entries": ()}))) == []


def test_the_time_of_a_completed_work_order_ends_with_its_last_step() -> None:
    """The time ends with the last step, not with the pull request's later end."""
    last = STEP.model_copy(update={"timestamp": "2025-01-01T00:01:00.000Z"})
    done = {"status": Status.COMPLETED, "updated_at": "2025-01-04T00:00:00.000Z"}
    assert elapsed_seconds(TASK.model_copy(update={"steps": (last,), **done})) == 62.0


def test_the_time_of_a_work_order_does_not_run_backwards() -> None:
    """The time ends when the last step's result was recorded, even if that took a while."""
    late = {"timestamp": "2025-01-01T00:00:30.000Z", "ended_at": "2025-01-01T00:00:46.000Z"}
    done = {"status": Status.COMPLETED, "steps": (STEP.model_copy(update=late),)}
    assert elapsed_seconds(TASK.model_copy(update=done)) == 46.0
