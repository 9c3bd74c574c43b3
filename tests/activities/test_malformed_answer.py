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
