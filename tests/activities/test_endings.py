"""How an agent can end without an answer: a crash, a limit, a cancel, a worker's stop, a reset."""

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest
from fakes.agent_lab import carriers, mark_of
from fakes.repositories import git
from fakes.step_lab import FIXED, IMPLEMENTED, StepLab, halted
from fakes.taken_values import taken_values
from temporalio.exceptions import ApplicationError

from septet.agents.runs.usage import seconds_of
from septet.agents.turns.end_of_turn import finalize_run
from septet.contracts.names import Step, Verdict
from septet.contracts.order import Timeouts
from septet.contracts.steps import StepCall, StepResult
from septet.telemetry.metrics import RESCUES

pytestmark = pytest.mark.law

_HALF = {"src/half.py": "half\n"}
_WHOLE = {"edits": {"src/app.py": FIXED}, "answer": IMPLEMENTED}


def _applies(patch: str | None, origin: Path, folder: Path) -> bool:
    assert patch is not None
    git(folder, "clone", "-q", str(origin), "base")
    git(folder / "base", "apply", "--check", patch)
    return True


async def _halted(lab: StepLab, why: str) -> tuple[StepCall, asyncio.Task[StepResult]]:
    """Return the call and the end of a step that was halted after its hanging agent had made an edit."""
    await lab.open_to(Step.IMPLEMENT_PLAN, [{"edits": _HALF, "hang": True}, _WHOLE])
    call = lab.call(Step.IMPLEMENT_PLAN)
    return call, await halted(partial(lab.running, call), (lab.worktree / "src/half.py").exists, why)


async def test_a_crash_costs_no_work(lab: StepLab, tmp_path: Path) -> None:
    """After two crashes the agent begins anew from the checkpoint; its earlier work is in a rescue that applies."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    crash = {"edits": _HALF, "crash_after_edits": 1}
    lab.scenario(implement_plan=[crash, crash, _WHOLE])
    done = await lab.run(Step.IMPLEMENT_PLAN)
    assert (done.verdict, done.recovered_by, done.agent_starts) == (Verdict.DONE, "rerun", 3)
    finalize_run(lab.runs[-1])  # the attempt can read the end before the record is on disk
    assert done.duration_seconds == pytest.approx(sum(map(seconds_of, lab.runs)), abs=0.001)
    assert (done.timestamp, done.run) == (lab.runs[0].record.started_at, lab.runs[2].name)  # type: ignore[union-attr]
    assert not (lab.worktree / "src/half.py").exists()
    (rescue,) = done.rescues
    assert _applies(rescue.patch, lab.origin.bare, tmp_path)
    assert "half.py" in Path(rescue.patch or "").read_text(encoding="utf-8")


async def test_an_agent_that_only_crashes_fails_the_step_with_a_rescue(lab: StepLab, tmp_path: Path) -> None:
    """If every start crashes, the error's details hold the usage and the rescues, and a metric counts the rescues."""
    await lab.open_to(Step.IMPLEMENT_PLAN, {"edits": _HALF, "crash_after_edits": 1})
    with taken_values(RESCUES) as counted:
        failed = await lab.failing(lab.call(Step.IMPLEMENT_PLAN))
    assert (failed.type, failed.non_retryable) == ("AgentGaveUp", True)
    result = failed.details[0].result
    assert counted == [(1, {"step": "implement_plan"})] * len(result.rescues)
    assert (result.verdict, result.agent_starts) == (Verdict.FAILED, 3)
    assert result.session_id is not None
    assert [rescue.snapshot for rescue in result.rescues] == lab.snapshots("rescue")
    assert _applies(result.rescues[-1].patch, lab.origin.bare, tmp_path)


async def test_a_person_s_cancel_ends_the_agent_with_a_rescue(lab: StepLab) -> None:
    """A cancel ends the agent and all its processes, and takes a rescue of its work."""
    _, ended = await _halted(lab, "cancel_requested")
    cancelled = ended.result()
    assert cancelled.verdict is Verdict.CANCELLED
    assert [rescue.snapshot for rescue in cancelled.rescues] == lab.snapshots("rescue")
    assert cancelled.session_id is not None
    assert carriers(mark_of(lab.runs[0])) == []


async def test_a_worker_s_stop_leaves_the_agent_alive(lab: StepLab) -> None:
    """A worker that stops leaves its agent running; the next attempt adopts the agent, and starts no other."""
    call, stopped = await _halted(lab, "worker_shutdown")
    assert stopped.cancelled()
    assert lab.runs[0].lives()
    assert lab.snapshots("rescue") == []
    before = len(lab.heartbeats)  # the heartbeats name the run that the attempt follows
    adopted = await halted(partial(lab.running, call), lambda: any(lab.heartbeats[before:]), "cancel_requested")
    assert adopted.result().verdict is Verdict.CANCELLED
    assert len(lab.runs) == 1


async def test_a_bad_command_file_costs_the_end_of_the_work_no_rescue(lab: StepLab) -> None:
    """The end of the work takes its rescue also if the step's command file and settings are unusable."""
    await _halted(lab, "worker_shutdown")
    papers = lab.place.records / "papers.json"
    spoilt = json.loads(papers.read_bytes())
    spoilt["files"] |= {".septet/commands/implement_plan.md": " ", ".septet/septet.toml": "no = settings"}
    papers.write_text(json.dumps(spoilt), encoding="utf-8")
    ended = await lab.end_work(Step.IMPLEMENT_PLAN)
    assert ended.verdict is Verdict.CANCELLED
    assert carriers(mark_of(lab.runs[0])) == []
    assert [rescue.snapshot for rescue in ended.rescues] == lab.snapshots("rescue") != []
    assert ended.session_id is not None


async def test_the_wall_limit_ends_the_agent_and_its_children(lab: StepLab) -> None:
    """The limit ends all processes of the agent; its work is kept and reported, and no other agent starts."""
    lab.agent("""
init()
turn('m1')
write('src/half.py', 'half')
detached(lambda: time.sleep(60))
time.sleep(60)
""")
    await lab.open_to(Step.IMPLEMENT_PLAN)
    failed = await lab.failing(lab.call(Step.IMPLEMENT_PLAN, limits=Timeouts(wall_seconds=3)))
    (run,) = lab.runs
    assert failed.type == "AgentLimit"
    assert carriers(mark_of(run)) == []
    assert b'"m1"' in run.stdout.read_bytes()
    facts = failed.details[0]
    assert facts.remedy
    assert facts.result.session_id == run.record.session_id  # type: ignore[union-attr]
    assert facts.result.usage.input_tokens == 5
    assert [rescue.snapshot for rescue in facts.result.rescues] == lab.snapshots("rescue")
    assert (lab.worktree / "src/half.py").exists()


async def test_a_reset_returns_to_where_the_step_began(lab: StepLab) -> None:
    """Another workflow run ends the agent that still works, rescues its work and begins from the checkpoint."""
    call, _ = await _halted(lab, "worker_shutdown")
    lab.run_id = "run-2"
    done = await lab.running(call)
    assert (done.verdict, done.agent_starts) == (Verdict.DONE, 1)
    assert not (lab.worktree / "src/half.py").exists()
    assert carriers(mark_of(lab.runs[0])) == []
    (rescue,) = done.rescues
    assert "starts again" in rescue.reason


async def test_a_pause_ends_the_agent_and_the_next_attempt_resumes_it(lab: StepLab) -> None:
    """A paused step keeps session and worktree without a rescue, and the next attempt resumes the session."""
    call, ended = await _halted(lab, "paused")
    with pytest.raises(ApplicationError, match="unpause") as paused:
        ended.result()
    assert (paused.value.type, paused.value.non_retryable) == ("Paused", False)
    assert carriers(mark_of(lab.runs[0])) == []
    done = await lab.running(call)
    assert (done.verdict, done.recovered_by, done.rescues) == (Verdict.DONE, "resume", ())
    assert (lab.worktree / "src/half.py").exists()


async def test_an_activity_that_is_reset_begins_anew_from_its_checkpoint(lab: StepLab) -> None:
    """A reset ends the agent; the next attempt rescues its work and begins another session."""
    call, ended = await _halted(lab, "reset")
    with pytest.raises(ApplicationError, match="starts again") as reset:
        ended.result()
    assert (reset.value.type, reset.value.non_retryable) == ("Reset", False)
    assert carriers(mark_of(lab.runs[0])) == []
    done = await lab.running(call)
    assert (done.verdict, done.recovered_by, done.agent_starts) == (Verdict.DONE, None, 1)
    assert len(done.rescues) == 1
    assert not (lab.worktree / "src/half.py").exists()


async def test_a_first_attempt_that_finds_a_finished_run_begins_anew(lab: StepLab) -> None:
    """A first attempt after a reset, while no worker ran the activity, does not read the earlier agent's answer."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    call = lab.call(Step.IMPLEMENT_PLAN)
    await lab.running(call)
    lab.begun.clear()
    again = await lab.running(call)
    assert (again.recovered_by, again.agent_starts, len(lab.runs)) == (None, 1, 2)
    read = await lab.running(call)
    assert (read.recovered_by, len(lab.runs)) == ("read", 2)


@pytest.mark.parametrize(("began", "after"), [(2, 1), (2, 2), (3, 2)])
async def test_an_attempt_whose_number_has_not_risen_begins_anew(lab: StepLab, began: int, after: int) -> None:
    """Temporal counts a reset activity from 1 again, so an attempt whose number did not rise begins anew."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    call = lab.call(Step.IMPLEMENT_PLAN)
    await lab.running(call, attempt=began)
    again = await lab.running(call, attempt=after)
    assert (again.recovered_by, again.agent_starts, len(lab.runs)) == (None, 1, 2)
    read = await lab.running(call, attempt=after + 1)
    assert (read.recovered_by, len(lab.runs)) == ("read", 2)


async def test_a_busy_model_is_waited_for_without_a_rescue(lab: StepLab) -> None:
    """An overloaded API fails the attempt with a delay and without a rescue, and Temporal tries it again."""
    await lab.open_to(Step.IMPLEMENT_PLAN, {"api_error": 529})
    failed = await lab.failing(lab.call(Step.IMPLEMENT_PLAN))
    assert (failed.type, failed.non_retryable) == ("AgentApiUnavailable", False)
    assert failed.next_retry_delay is not None
    assert lab.snapshots("rescue") == []


async def test_a_workspace_that_is_not_here_says_so(lab: StepLab) -> None:
    """A step whose workspace is missing on this host fails for good, and the message names the work order."""
    await lab.open()
    call = lab.call(Step.CLASSIFY_ISSUE)
    assert lab.workspace is not None
    elsewhere = lab.workspace.model_copy(update={"work_order_id": "wo-2"})
    failed = await lab.failing(call.model_copy(update={"workspace": elsewhere}))
    assert (failed.type, failed.non_retryable) == ("NotFound", True)
    assert "wo-2" in failed.message
