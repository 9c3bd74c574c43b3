"""The summary turn: a session's summary is kept, and given to the next session."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from fakes.repositories import Origin
from fakes.step_lab import StepLab, settings_of, step_lab

from septet.contracts.lanes import SessionSummary, SummariseCall
from septet.contracts.names import Step, Verdict
from septet.pipelines.notes import LIMIT_BYTES
from septet.pipelines.store import PipelineStore

SUMMARY = "# Shop\\n\\n- Tests: make test"
TELLS = """\
import json
if "ends here" in prompt:
    init()
    turn("m1")
    say(json.dumps({"type": "result", "subtype": "success", "is_error": False, "session_id": session,
        "result": %r, "usage": {"input_tokens": 100, "output_tokens": 10}}))
else:
    answer({"issue_class": "/bug"})
"""


@pytest_asyncio.fixture
async def lab(tmp_path: Path, origin: Origin) -> AsyncIterator[StepLab]:
    """Yield a host that starts an agent for each turn."""
    async with step_lab(tmp_path, origin, settings_of(tmp_path, warm_agents=False)) as made:
        yield made


def shelf(lab: StepLab) -> PipelineStore:
    return PipelineStore(lab.parts.host.state.pipelines / "wo")


async def in_a_lane(lab: StepLab) -> None:
    workspace = await lab.open()
    lab.workspace = workspace.model_copy(update={"lane": "wo-1"})


async def summarised(lab: StepLab, session_id: str) -> SessionSummary:
    assert lab.workspace is not None
    return await lab.summarise(SummariseCall(workspace=lab.workspace, pipeline="wo", session_id=session_id))


async def classified(lab: StepLab, session_id: str | None = None) -> str:
    activity = len(lab.runs) + 1
    result = await lab.run(Step.CLASSIFY_ISSUE, pipeline="wo", session_id=session_id, attempt=activity)
    assert result.verdict is Verdict.DONE
    return result.session_id or ""


async def test_a_summary_is_kept_and_told_to_new_sessions_alone(lab: StepLab) -> None:
    """The pipeline keeps the summary and counts its tokens; only a new session has the summary in its prompt."""
    lab.agent(TELLS % SUMMARY.replace("\\n", "\n"))
    await in_a_lane(lab)
    before = await classified(lab)
    result = await summarised(lab, before)
    assert (result.warning, result.usage.input_tokens, result.usage.output_tokens) == ("", 100, 10)
    assert shelf(lab).summary("wo-1") == SUMMARY.replace("\\n", "\n")
    assert result.kept_bytes == len(shelf(lab).summary("wo-1"))
    after = await classified(lab)
    await classified(lab, after)
    assert lab.journal == ["start new", "start resume", "start new", "start resume"]
    assert [SUMMARY in prompt for prompt in lab.prompts] == [False, False, True, False]


async def test_a_finished_question_is_read_again_and_not_paid_twice(lab: StepLab) -> None:
    """An attempt after a lost result reads the summary, and pays no second turn."""
    lab.agent(TELLS % "All is well.")
    await in_a_lane(lab)
    before = await classified(lab)
    first = await summarised(lab, before)
    assert await summarised(lab, before) == first
    assert lab.journal == ["start new", "start resume"]


async def test_a_long_summary_is_cut_at_the_end_of_a_line(lab: StepLab) -> None:
    """A summary is cut at the end of a line within 8 KB."""
    lab.agent(TELLS % (("é" * 50 + "\n") * 200))
    await in_a_lane(lab)
    result = await summarised(lab, await classified(lab))
    summary = shelf(lab).summary("wo-1")
    assert result.kept_bytes == len(summary.encode()) <= LIMIT_BYTES
    assert set(summary.split("\n")) == {"é" * 50}


async def test_what_the_agent_changes_meanwhile_is_undone(lab: StepLab) -> None:
    """The agent's edits during the summary are undone, and are in a rescue."""
    lab.agent('if "ends here" in prompt:\n    write("late.txt", "late")\n' + TELLS % "All is well.")
    await in_a_lane(lab)
    result = await summarised(lab, await classified(lab))
    assert result.kept_bytes > 0
    assert not (lab.worktree / "late.txt").exists()
    assert len(lab.snapshots("rescue")) == 1


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ('result("  ")', "empty"),
        ('api_error(400, "Prompt is too long")', "too long"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "without a result"),
        ('api_error(401, "invalid key")', "invalid key"),
    ],
    ids=["empty", "too long", "crashed", "refused"],
)
async def test_without_a_summary_the_result_says_why(lab: StepLab, does: str, why: str) -> None:
    """Without a new summary the warning says why, and the earlier summary stays."""
    lab.agent(f'if "ends here" in prompt:\n    init()\n    {does}\nelse:\n    answer({{"issue_class": "/bug"}})\n')
    await in_a_lane(lab)
    shelf(lab).keep_summary("wo-1", "What was known before.")
    result = await summarised(lab, await classified(lab))
    assert result.kept_bytes == 0
    assert result.warning.startswith(
        "The session became too long, and the new one begins without a summary of it:"
    )
    assert why in result.warning
    assert shelf(lab).summary("wo-1") == "What was known before."


async def test_a_session_that_is_too_long_in_a_step_is_followed_by_one_with_the_summary(lab: StepLab) -> None:
    """If a session is too long in a step, the new session's prompt has the kept summary."""
    lab.agent(
        'if resumed:\n    init()\n    api_error(400, "Prompt is too long")\nanswer({"issue_class": "/bug"})\n'
    )
    await in_a_lane(lab)
    shelf(lab).keep_summary("wo-1", "What was known before.")
    before = await classified(lab)
    after = await classified(lab, before)
    assert after != before
    assert lab.journal == ["start new", "start resume", "start new"]
    assert ["What was known before." in prompt for prompt in lab.prompts] == [True, False, True]
