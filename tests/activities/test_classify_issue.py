import asyncio
from pathlib import Path

import pytest
from fakes.repositories import Origin
from fakes.step_lab import StepLab, settings_of, step_lab
from fakes.waiting import wait_until

from septet.contracts.names import Step, Verdict


@pytest.mark.parametrize(
    ("answer", "issue_class"),
    [
        ("Feature", "/feature"),
        ("`/bug`.", "/bug"),
        ("The issue is a feature: /feature", "/feature"),
        ({"issue_class": "/chore"}, "/chore"),
    ],
)
async def test_a_class_is_read_however_it_is_put(lab: StepLab, answer: object, issue_class: str) -> None:
    """A class in JSON, a single word or an unambiguous sentence becomes the command's name."""
    await lab.open()
    lab.scenario(classify_issue={"answer": answer})
    done = await lab.run(Step.CLASSIFY_ISSUE)
    assert (done.verdict, done.result_text) == (Verdict.DONE, issue_class)


async def test_an_ambiguous_class_is_no_answer(lab: StepLab) -> None:
    """A text that names two classes counts as unread."""
    await lab.open()
    lab.scenario(classify_issue={"answer": "It may be a /bug, or rather a /feature."})
    unread = await lab.run(Step.CLASSIFY_ISSUE)
    assert (unread.verdict, unread.result_text) == (Verdict.UNPARSED, None)
    assert "more than one class" in " ".join(unread.reasons)


async def test_a_step_tells_what_it_used(lab: StepLab) -> None:
    """A result holds session, model, tokens, cost, duration, exit code and checkpoint in less than 8 KB."""
    await lab.open()
    lab.scenario()
    done = await lab.run(Step.CLASSIFY_ISSUE)
    assert (done.usage.input_tokens, done.usage.output_tokens, done.usage.cost_usd) == (18, 2, 0.02)
    assert (done.agent, done.model, done.exit_code) == ("scripted", "scripted-1", 0)
    assert done.session_id == lab.runs[0].record.session_id  # type: ignore[union-attr]
    assert done.duration_seconds > 0
    assert done.checkpoint == lab.snapshots("checkpoint")[-1]
    assert done.run == "runs/wo-1/1-classify_issue-1"
    assert len(done.model_dump_json()) < 8192


async def test_a_finished_run_is_read_again(lab: StepLab) -> None:
    """The attempt after a lost result reads the outcome on disk, and no second agent is paid."""
    await lab.open()
    lab.scenario()
    call = lab.call(Step.CLASSIFY_ISSUE)
    first = await lab.running(call)
    again = await lab.running(call)
    assert (again.result_text, again.recovered_by) == (first.result_text, "read")
    assert len(lab.runs) == 1


async def test_heartbeats_name_run_and_session(lab: StepLab, tmp_path: Path) -> None:
    """The heartbeats of a working agent name its run and session."""
    await lab.open()
    gate = tmp_path / "gate"
    lab.scenario(classify_issue={"wait_for": str(gate)})
    running = asyncio.create_task(lab.run(Step.CLASSIFY_ISSUE))
    seen = await wait_until(lambda: [details[:2] for details in lab.heartbeats if details and details[1]])
    gate.touch()
    assert seen[-1] == ("runs/wo-1/1-classify_issue-1", (await running).session_id)


async def test_no_agent_sees_the_forges_key(lab: StepLab) -> None:
    """An agent's environment lacks the worker's key to the forge."""
    lab.agent("answer({'issue_class': '/bug'}) if 'GITHUB_TOKEN' not in os.environ else sys.exit(1)")
    await lab.open()
    assert (await lab.run(Step.CLASSIFY_ISSUE)).verdict is Verdict.DONE


async def test_agent_and_model_of_the_settings_serve_where_none_are_named(tmp_path: Path, origin: Origin) -> None:
    """A work order that names no agent and no model uses the worker's default agent and model."""
    settings = settings_of(tmp_path, agent="scripted", model="a-model-of-the-settings")
    async with step_lab(tmp_path, origin, settings) as lab:
        opened = await lab.open()
        done = await lab.run(Step.CLASSIFY_ISSUE)
    assert opened.agent == done.agent == "scripted"
    assert (done.verdict, done.model) == (Verdict.DONE, "a-model-of-the-settings")
