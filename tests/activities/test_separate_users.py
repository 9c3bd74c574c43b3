"""Whole steps of agents that are users of their own: the engine's git and the next user go on with what they leave."""

import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from fakes.repositories import Origin, copy_origin, git
from fakes.step_lab import FIXED, StepLab, settings_of

from septet.agents import scripted
from septet.agents.supervisor.own_user import FIRST_USER
from septet.agents.turns.finalize_run import end_all
from septet.contracts.names import Step, Verdict
from workers.registry import parts_of

pytestmark = pytest.mark.needs("root")

_CHECK = """\
import os, pathlib
print(os.getuid(), os.environ["HOME"])
pathlib.Path("../../api-token").read_text()
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user may pass."""
    folder = Path(tempfile.mkdtemp(prefix="septet-users-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
async def separate(public: Path, first_origin: Origin) -> AsyncIterator[StepLab]:
    """A host whose guests are users of their own, with the scripted agent where every user can start it."""
    settings = settings_of(public).model_copy(update={"sandbox": "uid"})
    _put_agent(public)
    async with parts_of(settings) as parts:
        made = StepLab(public, copy_origin(first_origin, public / "origins"), parts)
        yield made
        for name in parts.host.runtime.runs.orders():
            await end_all(parts.host.runtime.runs, name, "cancelled")


def _put_agent(public: Path) -> None:
    """Copy the scripted agent, which imports nothing else of ours, with a Python that every user can start."""
    package = public / "code" / "septet" / "agents" / "scripted"
    shutil.copytree(Path(scripted.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (public / "code" / "septet", public / "code" / "septet" / "agents"):
        (folder / "__init__.py").touch()
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
    program = public / "agent"
    program.unlink()
    program.write_text(
        f"#!{python} -I\nimport sys\nsys.path.insert(0, {str(public / 'code')!r})\n"
        "from septet.agents.scripted.program import main\nsys.exit(main())\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    assert sys.version_info


async def test_steps_of_users_of_their_own_come_to_a_commit(separate: StepLab) -> None:
    """Each step's agent is another user; what it writes the engine snapshots, and commits."""
    await separate.open_to(Step.IMPLEMENT_PLAN)
    separate.scenario(
        implement_plan={"edits": {"src/app.py": FIXED}},
        create_commit={"answer": {"commit_message": "bug: totals"}},
    )
    done = await separate.run(Step.IMPLEMENT_PLAN)
    assert (done.verdict, done.sandbox) == (Verdict.DONE, "uid")
    committed = await separate.run(Step.CREATE_COMMIT)
    assert committed.verdict is Verdict.DONE
    assert git(separate.worktree, "-c", "safe.directory=*", "show", "HEAD:src/app.py") == FIXED.strip()
    users = {run.record.user for run in separate.runs if run.record is not None}
    assert len(users) == len(separate.runs) == 2
    assert min(users) > FIRST_USER


async def test_an_answer_that_cannot_be_read_is_asked_for_in_the_same_session(separate: StepLab) -> None:
    """The session lies in the work order's home, which changes hands with the workspace."""
    await separate.open_to(Step.IMPLEMENT_PLAN)
    separate.scenario(implement_plan={"edits": {"src/app.py": FIXED}, "malformed": "truncated"})
    call = separate.call(Step.IMPLEMENT_PLAN)
    unread = await separate.running(call)
    assert unread.verdict is Verdict.UNPARSED
    done = await separate.finalize(call, unread)
    assert (done.verdict, done.session_id) == (Verdict.DONE, unread.session_id)


async def test_a_check_is_a_user_of_its_own_too(separate: StepLab) -> None:
    """It reads nothing that is the worker's: the step says what it printed."""
    separate.origin.push({".septet/septet.toml": 'checks = ["python3 -IS check.py"]\n', "check.py": _CHECK})
    await separate.open_to(Step.CREATE_COMMIT)
    separate.scenario(create_commit={"answer": {"commit_message": "bug: sum the prices"}})
    done = await separate.run(Step.CREATE_COMMIT)
    assert done.verdict is Verdict.UNPROVEN
    assert "PermissionError" in done.reasons[0]
    printed = (separate.runs[-1].folder / "checks" / "1" / "stdout.jsonl").read_text(encoding="utf-8").split()
    assert int(printed[0]) > FIRST_USER
    assert printed[1].endswith("homes/wo-1/checks")
