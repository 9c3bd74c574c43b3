from fakes.step_lab import StepLab

from septet.contracts.names import Step, Verdict


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


async def test_no_agent_sees_the_forges_key(lab: StepLab) -> None:
    """An agent's environment lacks the worker's key to the forge."""
    lab.agent("answer({'issue_class': '/bug'}) if 'GITHUB_TOKEN' not in os.environ else sys.exit(1)")
    await lab.open()
    assert (await lab.run(Step.CLASSIFY_ISSUE)).verdict is Verdict.DONE
