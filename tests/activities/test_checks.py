"""A repository's own checks on a real host have no more rights than the agents whose work they check."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from fakes.processes import processes_with
from fakes.repositories import git
from fakes.step_lab import StepLab, halted
from fakes.taken_values import taken_values
from fakes.waiting import until, wait_until

from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepResult
from septet.telemetry.metrics import PROXY_REFUSALS
from workers.registry import parts_of

_MESSAGE = "bug: sum the prices"
_DAEMON = """\
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-IS", "-c", "import time; time.sleep(300)", "MARK"], {})
    os._exit(0)
os.wait()
"""
"""Leaves a process in a new session, with another parent and without environment."""
_LOOK = """\
import pathlib, sys
seen = []
for file in pathlib.Path("/proc").glob("[0-9]*/environ"):
    try:
        seen.append(file.read_bytes())
    except OSError:
        pass
sys.exit(3 if any(b"canary-of-another-process" in each for each in seen) else 0)
"""

_ASK = """\
import urllib.request
for name in ("one", "two"):
    try:
        urllib.request.urlopen(f"https://{name}.example/", timeout=20)
    except OSError:
        pass
"""


@pytest.fixture
def neighbour() -> Iterator[None]:
    """Run a process of the same user with a key in its environment, as a worker has."""
    with subprocess.Popen(
        ["sleep", "300"], env={"PATH": os.defpath, "KEY": "canary-of-another-process"}
    ) as process:
        yield
        process.kill()


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Open more files than the 1024 that `select` takes, as a worker with many work orders does."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, before[1]), before[1]))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    yield
    for descriptor in opened:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_a_check_runs_on_a_worker_with_many_open_files(lab: StepLab, many_descriptors: None) -> None:
    """A check passes on a worker whose descriptors have numbers over 1024."""
    assert (await _begun(lab, "true")).verdict is Verdict.DONE


async def _begun(lab: StepLab, check: str, program: str = "") -> StepResult:
    """Run the step whose proof runs this check; `program` is the repository's `check.py`."""
    await _open(lab, check, program)
    return await lab.run(Step.CREATE_COMMIT)


async def _open(lab: StepLab, check: str, program: str = "") -> None:
    files: dict[str, bytes | str] = {".septet/septet.toml": f'checks = ["{check}"]\n', "check.py": program}
    lab.origin.push(files)
    await lab.open_to(Step.CREATE_COMMIT, {"answer": {"commit_message": _MESSAGE}})


async def test_nothing_that_a_check_started_outlives_it(lab: StepLab) -> None:
    """A daemon that a check leaves in a new session without environment is dead when the step ends."""
    mark = f"daemon-of-{lab.root.name}"
    done = await _begun(lab, f"{sys.executable} -IS check.py", _DAEMON.replace("MARK", mark))
    assert (done.verdict, processes_with(mark)) == (Verdict.DONE, [])


async def test_a_check_sees_no_process_of_others(lab: StepLab, neighbour: None) -> None:
    """In a sandbox a check cannot read the environment of another process of this user, such as the worker's."""
    done = await _begun(lab, f"{sys.executable} -IS check.py", _LOOK)
    assert (done.verdict is Verdict.DONE) is lab.parts.host.sandbox.confines


async def test_new_files_of_a_check_are_in_no_commit(lab: StepLab) -> None:
    """Files that a check makes are removed, also after a failure; new files of the agent and format edits stay."""
    program = """
import pathlib, sys
pathlib.Path("__pycache__").mkdir(exist_ok=True)
pathlib.Path("__pycache__/app.pyc").write_bytes(b"x")
app = pathlib.Path("src/app.py")
was = app.read_text()
app.write_text(was + "# formatted\\n")
sys.exit("# formatted" not in was)
"""
    await _open(lab, f"{sys.executable} -IS check.py", program)
    lab.agent(f"open('src/new.py', 'w').write('x = 1'); answer({{'commit_message': {_MESSAGE!r}}})")
    assert (await lab.run(Step.CREATE_COMMIT)).verdict is Verdict.UNPROVEN
    assert not (lab.worktree / "__pycache__" / "app.pyc").exists()
    done = await lab.running(lab.call(Step.CREATE_COMMIT).model_copy(update={"attempt": 2}))
    assert done.verdict is Verdict.DONE
    assert not (lab.worktree / "__pycache__" / "app.pyc").exists()
    assert git(lab.worktree, "status", "--porcelain") == ""
    names = git(lab.worktree, "show", "--name-only", "--format=", "HEAD").split()
    assert ("src/new.py" in names, "__pycache__/app.pyc" in names) == (True, False)
    assert "# formatted" in git(lab.worktree, "show", "HEAD:src/app.py")


async def test_a_check_may_leave_a_closed_folder(lab: StepLab) -> None:
    """A folder without write permission, as Go leaves for modules, does not fail the step."""
    program = """
import os, pathlib
pathlib.Path("modules").mkdir(exist_ok=True)
pathlib.Path("modules/one.go").write_text("package one")
os.chmod("modules", 0o555)
"""
    done = await _begun(lab, f"{sys.executable} -IS check.py", program)
    assert done.verdict is Verdict.DONE
    (lab.worktree / "modules").chmod(0o755)


@pytest.mark.needs("bubblewrap")
async def test_hosts_that_a_check_was_refused_are_counted(lab: StepLab) -> None:
    """Refused hosts of a check count for its step and agent, as the agent's own do, also after a finalizer."""
    await _open(lab, f"{sys.executable} -IS check.py", _ASK)
    lab.scenario(create_commit={"malformed": "truncated"})
    with taken_values(PROXY_REFUSALS) as taken:
        call = lab.call(Step.CREATE_COMMIT)
        unread = await lab.running(call)
        assert (unread.verdict, taken) == (Verdict.UNPARSED, [])
        assert (await lab.finalize(call, unread)).verdict is Verdict.DONE
        lab.scenario(create_commit={})
        await lab.running(call.model_copy(update={"attempt": 2}))
    assert taken == [(2, {"step": "create_commit", "agent": "scripted"})] * 2


async def test_a_check_that_uses_too_much_is_told_by_the_name_of_the_limit(lab: StepLab) -> None:
    """The reason names the limit that the check reached, and the worker's setting that changes the limit."""
    settings = lab.parts.host.settings.model_copy(update={"output_limit_mib": 1})
    async with parts_of(settings) as parts:
        program = "import time; print('x' * 2_000_000, flush=True); time.sleep(60)"
        done = await _begun(replace(lab, parts=parts), f"{sys.executable} -IS check.py", program)
    assert done.verdict is Verdict.UNPROVEN
    assert "used too much: output limit of 1 MiB reached. SEPTET_OUTPUT_LIMIT_MIB" in done.reasons[0]


async def test_a_cancelled_step_ends_its_check(lab: StepLab) -> None:
    """A check that hangs is dead when the cancelled step has ended."""
    hangs = "import os, sys; 'sum' in open('src/app.py').read() and os.execlp('sleep', 'sleep', '299.5')"
    await _open(lab, f"{sys.executable} -IS check.py", hangs)  # the check passes on the base commit
    work = partial(lab.running, lab.call(Step.CREATE_COMMIT))
    ended = await halted(work, lambda: processes_with("299.5"), "cancel_requested")
    assert (ended.result().verdict, processes_with("299.5")) == (Verdict.CANCELLED, [])


@pytest.mark.law
async def test_a_check_ends_with_the_worker_that_runs_it(lab: StepLab, tmp_path: Path) -> None:
    """The writer lock of a killed worker is free only after its check is dead, so the next attempt writes alone."""
    runs = lab.parts.host.runs
    runs.folder_of("wo-9").mkdir()
    program = f"""
from pathlib import Path
from septet.agents.runs.folders import Runs
from septet.agents.sandbox.guest_run import GuestCommand, GuestRunner
from septet.agents.sandbox.sandbox import Sandbox
from septet.agents.sandbox.supervisors import Supervisors
runs = Runs(Path({str(runs.root)!r}))
writer_lock = runs.lock_writer("wo-9")
runner = GuestRunner(runs, Supervisors(), Sandbox(), runs.folder_of("wo-9") / "checks", None, writer_lock)
runner.run(GuestCommand(("sleep", "299.25"), {{"PATH": {os.environ["PATH"]!r}}}, Path({str(tmp_path)!r}), 300.0))
"""
    worker = subprocess.Popen([sys.executable, "-c", program])
    await wait_until(lambda: processes_with("299.25"))
    worker.kill()
    worker.wait()
    assert until(lambda: not runs.is_held("wo-9"))
    assert processes_with("299.25") == []
