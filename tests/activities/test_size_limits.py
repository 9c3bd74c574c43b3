"""Answers and trees over a limit: the message names the limit, and the work is kept."""

import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from fakes.step_lab import FIXED, IMPLEMENTED, StepLab

from septet.contracts.names import Step, Verdict
from workers.registry import parts_of

READ_SECONDS = 6.0
"""The most seconds of CPU for the step; reading 3 GiB would take longer."""


@pytest.fixture
async def small(lab: StepLab) -> AsyncIterator[StepLab]:
    """Yield a lab whose worker allows answers of 2 KiB and trees of 64 MiB."""
    settings = lab.parts.host.settings.model_copy(update={"answer_limit_kib": 2, "tree_limit_mib": 64})
    async with parts_of(settings) as parts:
        yield replace(lab, parts=parts)


async def test_an_answer_that_ends_before_the_limit_is_asked_for_again(small: StepLab) -> None:
    """If the JSON lies before the part that is read, the answer is unread, and the reason names the setting."""
    await small.open_to(Step.CLASSIFY_ISSUE)
    small.agent("""init(); result(('{"issue_class": "/bug"}' + ' for' * 2000).replace('"', chr(92) + '"'))""")
    unread = await small.run(Step.CLASSIFY_ISSUE)
    assert unread.verdict is Verdict.UNPARSED
    assert any("SEPTET_ANSWER_LIMIT_KIB" in reason for reason in unread.reasons)


async def test_a_check_that_leaves_too_much_stops_the_commit(small: StepLab) -> None:
    """A check's files are measured before git reads them."""
    small.origin.push({".septet/septet.toml": 'checks = ["truncate -s 80M src/app.py"]\n'})
    await small.open_to(Step.CREATE_COMMIT, {"answer": {"commit_message": "bug: sum the prices"}})
    failed = await small.failing(small.call(Step.CREATE_COMMIT), r"tree limit of 64 MiB reached.*app.py, 80 MiB")
    assert failed.non_retryable
    assert "SEPTET_TREE_LIMIT_MIB" in failed.details[0].remedy
    assert (small.worktree / "src" / "app.py").stat().st_size == 80 << 20


async def test_a_file_that_is_too_large_is_told_to_the_agent_unread(lab: StepLab) -> None:
    """A sparse file of 3 GiB is not read: the reason names file and sizes, and the file stays."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    lab.agent(f"""
open("src/app.py", "w").write({FIXED!r})
open("hole.bin", "wb").truncate(3 << 30)
answer({IMPLEMENTED!r})
""")
    began = time.process_time()
    told = await lab.run(Step.IMPLEMENT_PLAN)
    assert time.process_time() - began < READ_SECONDS
    assert told.verdict is Verdict.UNPROVEN
    assert any("hole.bin has 3072 MiB, and 100 MiB are allowed" in reason for reason in told.reasons)
    assert (lab.worktree / "hole.bin").stat().st_size == 3 << 30
    (lab.worktree / "hole.bin").unlink()


async def test_what_nobody_can_read_is_told(lab: StepLab) -> None:
    """A warning names a pipe and an unreadable folder, which no snapshot and no commit hold."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    lab.agent(f"""
import os
open("src/app.py", "w").write({FIXED!r})
os.mkfifo("queue")
os.mkdir("shut")
open("shut/work", "w").write("x")
os.chmod("shut", 0)
answer({IMPLEMENTED!r})
""")
    try:
        done = await lab.run(Step.IMPLEMENT_PLAN)
    finally:
        (lab.worktree / "shut").chmod(0o700)
    assert done.verdict is Verdict.DONE
    (told,) = [warning for warning in done.warnings if "Neither snapshots nor commits hold" in warning]
    assert "queue (a FIFO)" in told
    assert ("shut (not readable: Permission denied)" in told) is (os.geteuid() != 0)
