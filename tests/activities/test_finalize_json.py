import pytest
from fakes.agent_lab import carriers, mark_of
from fakes.pictures import picture
from fakes.step_lab import FIXED, IMPLEMENTED, StepLab, halted
from temporalio.exceptions import ApplicationError

from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult

_SPOILED = {"edits": {"src/app.py": FIXED}, "malformed": "prose"}


async def _unread(lab: StepLab) -> tuple[StepCall, StepResult]:
    await lab.open_to(Step.IMPLEMENT_PLAN)
    call = lab.call(Step.IMPLEMENT_PLAN)
    return call, await lab.running(call)


def _agent(lab: StepLab, when_asked_again: str) -> None:
    """Let the agent work without an answer, and run `when_asked_again` in the resumed session."""
    lab.agent(f"""
if not resumed:
    write('src/app.py', {FIXED!r})
    init(); turn('m1'); result('All done, it looks fine.')
else:
{when_asked_again}
""")


@pytest.mark.law
async def test_a_cancelled_finalizer_loses_nothing_of_what_its_step_has_used(lab: StepLab) -> None:
    """A cancel ends the finalizer's agent with a rescue, and its result holds all use of the step and the finalizer."""
    _agent(lab, "    init(); turn('f1'); note('asked'); time.sleep(300)")
    call, unread = await _unread(lab)
    asking = await halted(
        lambda within: lab.finalize(call, unread, within=within),
        lambda: "asked" in lab.journal,
        "cancel_requested",
    )
    ended = asking.result()
    assert (ended.verdict, ended.run, ended.agent_starts) == (Verdict.CANCELLED, unread.run, 2)
    assert ended.usage == unread.usage.plus(unread.usage), "each of the two has had one and the same turn"
    assert ended.duration_seconds > unread.duration_seconds > 0
    assert carriers(mark_of(lab.runs[-1])) == []
    assert [rescue.snapshot for rescue in ended.rescues] == lab.snapshots("rescue") != []


async def test_the_finalizer_has_no_tools_and_reads_what_was_wrong(lab: StepLab) -> None:
    """The question resumes the same session without tools, and names the reasons and the schema."""
    lab.scenario(implement_plan=_SPOILED)
    call, unread = await _unread(lab)
    await lab.finalize(call, unread)
    record = lab.runs[-1].record
    assert record is not None
    assert record.resumed_from == unread.session_id
    assert record.argv[record.argv.index("--tools") + 1] == ""
    assert all(words in lab.prompts[-1] for words in (*unread.reasons, "key_changes_made", "Do not edit files"))


async def test_a_second_question_has_other_words_and_is_the_last(lab: StepLab) -> None:
    """The second question has another prompt, and if it fails too, the work is in a rescue."""
    lab.scenario(implement_plan=_SPOILED | {"finalizer": {"malformed": "prose"}})
    call, unread = await _unread(lab)
    first = await lab.finalize(call, unread)
    assert (first.verdict, first.checkpoint, first.rescues) == (Verdict.UNPARSED, unread.checkpoint, ())
    second = await lab.finalize(call, first, attempt=2)
    assert (second.verdict, second.result_text) == (Verdict.UNPARSED, None)
    assert [rescue.snapshot for rescue in second.rescues] == lab.snapshots("rescue")
    assert len(set(lab.prompts)) == 3
    assert (lab.worktree / "src/app.py").read_text(encoding="utf-8") == FIXED


async def test_what_a_finalizer_does_to_the_worktree_is_undone(lab: StepLab) -> None:
    """Edits of a finalizer are undone, and are in a rescue with a warning."""
    _agent(lab, f"    write('src/app.py', 'broken'); write('new.txt', 'x'); answer({IMPLEMENTED!r})")
    call, unread = await _unread(lab)
    work = picture(lab.worktree)
    done = await lab.finalize(call, unread)
    assert done.verdict is Verdict.DONE
    assert picture(lab.worktree) == work
    (rescue,) = lab.snapshots("rescue")
    assert any("changed the worktree" in warning and rescue in warning for warning in done.warnings)
    assert [each.snapshot for each in done.rescues] == [rescue]


async def test_a_finalizer_that_crashes_is_no_answer(lab: StepLab) -> None:
    """A finalizer that crashes at every start counts as an unread answer, and the work stays."""
    _agent(lab, "    write('src/app.py', 'broken'); os.kill(os.getpid(), 9)")
    call, unread = await _unread(lab)
    result = await lab.finalize(call, unread)
    assert (result.verdict, result.checkpoint) == (Verdict.UNPARSED, unread.checkpoint)
    assert "crash" in result.reasons[0] or "without a result" in result.reasons[0]
    assert (lab.worktree / "src/app.py").read_text(encoding="utf-8") == FIXED


async def test_a_finalizer_whose_answer_does_not_hold_is_refused(lab: StepLab) -> None:
    """The finalizer's answer is checked against the same evidence as the step's own."""
    lab.scenario(implement_plan={"edits": {}, "malformed": "prose"})
    call, unread = await _unread(lab)
    refused = await lab.finalize(call, unread)
    assert refused.verdict is Verdict.UNPROVEN
    assert "Nothing changed beyond the plan" in refused.reasons[0]


async def test_a_model_that_refuses_the_finalizer_fails_it(lab: StepLab) -> None:
    """A refusal by the model's API fails the finalizer with a remedy, and the work stays."""
    lab.scenario(implement_plan=_SPOILED | {"finalizer": {"api_error": 401}})
    call, unread = await _unread(lab)
    with pytest.raises(ApplicationError) as failed:
        await lab.finalize(call, unread)
    assert failed.value.type == "AgentApi"
    assert failed.value.non_retryable
    assert failed.value.details[0].remedy
    assert (lab.worktree / "src/app.py").read_text(encoding="utf-8") == FIXED


async def test_a_session_that_is_refused_for_ever_is_not_asked_again(lab: StepLab) -> None:
    """After a final refusal the finalizer asks no second time, and the next try begins a new session."""
    lab.scenario(implement_plan=_SPOILED | {"finalizer": {"api_error": 400}})
    call, unread = await _unread(lab)
    result = await lab.finalize(call, unread)
    assert (result.verdict, result.session_id, result.agent_starts) == (Verdict.UNPARSED, None, 2)
    assert "400" in result.reasons[0]
    assert [rescue.snapshot for rescue in result.rescues] == lab.snapshots("rescue") != []
    assert (lab.worktree / "src/app.py").read_text(encoding="utf-8") == FIXED
