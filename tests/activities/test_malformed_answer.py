"""A malformed answer costs one more question, and no work."""

from fakes.pictures import picture
from fakes.step_lab import FIXED, StepLab

from septet.contracts.names import Step, Verdict


async def test_a_malformed_answer_keeps_its_worktree(lab: StepLab) -> None:
    """The worktree stays byte for byte, and the same session answers the finalizer."""
    await lab.open_to(Step.IMPLEMENT_PLAN, {"edits": {"src/app.py": FIXED}, "malformed": "truncated"})
    call = lab.call(Step.IMPLEMENT_PLAN)

    unread = await lab.running(call)
    work = picture(lab.worktree)

    assert (unread.verdict, unread.result_text) == (Verdict.UNPARSED, None)
    assert work[b"src/app.py"][2] == FIXED.encode()
    assert unread.checkpoint == lab.snapshots()[-1]

    done = await lab.finalize(call, unread)

    assert (done.verdict, done.recovered_by) == (Verdict.DONE, "finalizer")
    assert done.result_text is not None
    assert done.session_id == unread.session_id
    assert picture(lab.worktree) == work


async def test_an_answer_that_is_none_is_told_in_the_clis_words(lab: StepLab) -> None:
    """If the answer has no text, the reason says that the answer is empty."""
    await lab.open_to(Step.CLASSIFY_ISSUE)
    lab.agent("result('  ')")
    unread = await lab.run(Step.CLASSIFY_ISSUE)
    assert (unread.verdict, unread.reasons) == (Verdict.UNPARSED, ("The agent gave an empty answer.",))
