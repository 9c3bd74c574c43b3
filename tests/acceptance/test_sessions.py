"""Work orders whose steps share sessions: one for planning, and one for implementing."""

import json
from typing import Any

import pytest
from fakes.repositories import Origin
from fakes.septet_command import Septet
from fakes.waiting import until

from septet.agents.runs.folders import Runs
from septet.agents.turns.warm import warm_orders

pytestmark = pytest.mark.faces

PLANNING = 3
"""The planning steps: classify, plan, find the plan."""


def sessions_of(served: Septet, order: str) -> list[str]:
    return [step["session_id"] for step in served("steps", order, "--json").json["steps"]]


def outputs_of(task: dict[str, Any]) -> list[str]:
    return [step["output"] for step in task["steps"][:-1]]


def marks_of(served: Septet, order: str) -> list[str]:
    """Return each run's mark, by which its processes are found; all turns of one process have the same mark."""
    runs = sorted((served.state / "runs" / order).glob("*/run.json"))
    return [json.loads(run.read_text(encoding="utf-8"))["mark"] for run in runs]


def test_the_planner_and_the_implementor_have_a_session_and_a_process_each(
    served: Septet, origin: Origin, done: dict[str, Any]
) -> None:
    """With `--sessions shared` seven steps are two sessions in two processes, and no process is left at the end."""
    order = (
        "run",
        "--repo",
        origin.bare,
        "--title",
        done["title"],
        "--body",
        done["description"],
        "--wait",
        "--json",
    )
    together = served(*order, "--id", "wo-together", "--sessions", "shared").json["task"]
    assert (together["status"], together["error"]) == ("completed", None)
    assert outputs_of(together) == [output.replace("wo-done", "wo-together") for output in outputs_of(done)]
    assert len(set(sessions_of(served, "wo-done"))) == len(done["steps"])
    sessions = sessions_of(served, "wo-together")
    assert len(set(sessions[:PLANNING])) == len(set(sessions[PLANNING:])) == 1
    assert len(set(sessions)) == 2
    marks = marks_of(served, "wo-together")
    assert len(set(marks[:PLANNING])) == len(set(marks[PLANNING:])) == 1
    assert len(set(marks)) == 2
    assert len(set(marks_of(served, "wo-done"))) == len(done["steps"])
    until(lambda: "wo-together" not in warm_orders(Runs(served.state / "runs")))


def test_another_plan_comes_from_the_same_session_and_a_retry_begins_a_new_one(
    served: Septet, origin: Origin
) -> None:
    """A rejected plan is planned again in its session; after a reset the worktree differs, so a new session begins."""
    order = ("run", "--repo", origin.bare, "--title", "Say hello", "--sessions", "shared", "--approve-plan")
    assert served(*order, "--id", "wo-again").code == 0
    plan = _waiting_plan(served, "")
    assert served("reject", "wo-again", "--feedback", "Shorter.").code == 0
    plan = _waiting_plan(served, plan)
    (session,) = set(sessions_of(served, "wo-again"))
    assert served("cancel", "wo-again").code == 0
    assert served("retry", "wo-again", "--from", "build_plan").code == 0
    _waiting_plan(served, plan)
    classified, *planned = sessions_of(served, "wo-again")
    assert classified == session
    assert len(set(planned)) == 1
    assert session not in planned
    assert served("cancel", "wo-again").code == 0


def _waiting_plan(served: Septet, before: str) -> str:
    """Return the time of the waiting plan, once it differs from the time before."""

    def is_another(task: dict[str, Any]) -> bool:
        return bool(task["status"] == "waiting" and task["steps"][-1]["timestamp"] != before)

    return str(served.wait_for_order("wo-again", is_another)["steps"][-1]["timestamp"])


def test_a_finalizer_asks_the_shared_session_which_goes_on_after_it(served: Septet, origin: Origin) -> None:
    """The finalizer has no tools, so it needs its own process; the next step resumes the session in a third process."""
    order = served.scenario("wo-unparsed", {"steps": {"build_plan": {"malformed": "truncated"}}})
    argv = ("run", "--repo", origin.bare, "--title", "Say hello", "--sessions", "shared", "--id", order)
    task = served(*argv, "--wait", "--json").json["task"]
    assert (task["status"], task["rescues"]) == ("completed", [])
    assert task["steps"][1]["recovered_by"] == "finalizer"
    sessions = sessions_of(served, order)
    assert (len(set(sessions[:PLANNING])), len(set(sessions))) == (1, 2)
    classified, planned, asked, found, *implemented = marks_of(served, order)
    assert classified == planned
    assert len({planned, asked, found, *implemented}) == 4
