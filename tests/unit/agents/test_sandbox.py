"""Agents in their sandbox; without a sandbox the tests check what holds on that machine."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.agent_lab import Lab, agent_of, carriers, end_of, mark_of, naming, supervisor_of
from fakes.bundled_bubblewrap import copy_bundled

from septet.agents.guest.description import GuestFiles
from septet.agents.runs.folders import Run
from septet.agents.sandbox.connections import end_agent
from septet.agents.sandbox.sandbox import find_sandbox, how_to_allow
from septet.errors import AgentCrashedError, AgentMissingError, SandboxError

ESCAPES = """
    def scribble():
        program = "import time\\nwhile True: open('scribbled', 'a').write('x'); time.sleep(0.01)"
        os.execve(sys.executable, ["python", "-IS", "-c", program, os.path.abspath("escaped")], {})

    def keep_mark():
        time.sleep(300)

    init()
    if not resumed:
        detached(scribble)
        detached(keep_mark)
        wait_for("scribbled")
        turn("m1")
        time.sleep(300)
    result("done")
"""
"""An agent whose tools leave its session; one of them clears its environment and writes without end."""


@pytest.mark.parametrize("killed", [supervisor_of, agent_of, None])
async def test_nothing_of_an_agent_outlives_it(confined: Lab, killed: Callable[[Run], int] | None) -> None:
    """All tools die with an agent that is cancelled or dies; without a sandbox a killed supervisor leaves one."""
    confined.agent(ESCAPES)
    attempt, run = await confined.begun("assistant")
    (tool,) = naming(confined.worktree / "escaped")
    assert carriers(mark_of(run))
    if killed is None:
        await end_agent(run, "cancelled")
    else:
        os.kill(killed(run), signal.SIGKILL)
        await attempt
        assert confined.journal == ["start new", "start resume"]
    left = naming(confined.worktree / "escaped")
    if left and killed is supervisor_of and not confined.runtime.sandbox.confines:
        os.kill(tool, signal.SIGKILL)
    else:
        assert left == []
    assert carriers(mark_of(run)) == []
    await attempt


async def test_an_agent_is_asked_to_end_before_it_is_killed(confined: Lab) -> None:
    """SIGTERM reaches the agent through the sandbox, and the agent has time to end by itself."""
    confined.agent("""
        def leave(*_):
            note("leaves in good order")
            sys.exit(0)

        signal.signal(signal.SIGTERM, leave)
        init()
        turn("m1")
        time.sleep(300)
    """)
    attempt, run = await confined.begun("assistant")
    record = await end_agent(run, "cancelled")
    await attempt
    assert confined.journal == ["start new", "leaves in good order"]
    assert record is not None
    assert (record.cause, record.exit_code, record.signal) == ("ended", 0, None)


@pytest.mark.parametrize(
    ("end", "code", "number"), [("sys.exit(3)", 3, None), ("os.kill(os.getpid(), 9)", None, 9)]
)
async def test_exit_codes_and_signals_are_known(
    confined: Lab, end: str, code: int | None, number: int | None
) -> None:
    """The records name the sandbox, and hold the end of the agent itself."""
    confined.agent(f"init(); {end} if not resumed else result('done')")
    assert (await confined.run_turn()).recovered_by == "resume"
    run = confined.runtime.runs.of("wo-1")[0]
    assert run.record is not None
    assert run.record.sandbox == confined.runtime.sandbox.kind
    record = end_of(run)
    assert (record.cause, record.exit_code, record.signal) == ("exited", code, number)


async def test_a_program_that_is_busy_is_known_in_a_sandbox_too(confined: Lab) -> None:
    """A busy program gives the same retryable error inside a sandbox, and the next attempt starts it."""
    confined.agent("init(); result('done')")
    busy = os.open(confined.program, os.O_WRONLY)
    with pytest.raises(AgentCrashedError, match="ETXTBSY") as caught:
        await confined.run_turn()
    assert caught.value.retryable
    os.close(busy)
    assert (await confined.run_turn()).outcome.text == "done"


async def test_a_sandbox_that_fails_says_why(lab: Lab) -> None:
    """If bubblewrap fails after the worker's start, its message is the error, and no agent runs."""
    program = write_bwrap(lab.root / "bin", "echo 'bwrap 9.9'")
    sandbox = find_sandbox("auto", {"PATH": str(program.parent)})
    assert (sandbox.confines, sandbox.version) == (True, "bwrap 9.9")
    write_bwrap(lab.root / "bin", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    lab.runtime = replace(lab.runtime, sandbox=sandbox)
    lab.agent("init(); result('done')")
    with pytest.raises(AgentMissingError, match="No permissions"):
        await lab.run_turn()
    assert lab.journal == []


def write_bwrap(folder: Path, body: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_where_bubblewrap_cannot_start_agents_run_unconfined(tmp_path: Path) -> None:
    """`auto` runs agents unconfined and names the reason and the remedy."""
    program = write_bwrap(tmp_path, "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    sandbox = find_sandbox("auto", {"PATH": str(tmp_path)})
    assert (sandbox.confines, sandbox.kind) == (False, "none")
    assert sandbox.reason.startswith(f"{program} cannot make a sandbox here: bwrap: No permissions")
    assert "user namespaces" in sandbox.remedy
    assert sandbox.confinement(GuestFiles(tmp_path)) is None


@pytest.mark.parametrize("program", [None, "no program", "#!/bin/sh\nexit 1\n"])
def test_a_sandbox_that_is_demanded_and_not_there_is_an_error(tmp_path: Path, program: str | None) -> None:
    """`bwrap` raises an error with the cause and a remedy."""
    if program is not None:
        write_bwrap(tmp_path, "exit 1").write_text(program, encoding="utf-8")
    with pytest.raises(SandboxError, match="SEPTET_SANDBOX=bwrap: ") as caught:
        find_sandbox("bwrap", {"PATH": str(tmp_path)}, bundled=None)
    assert caught.value.remedy


def test_nothing_is_tried_where_no_sandbox_is_wanted(tmp_path: Path) -> None:
    """`none` confines no agent and starts no bubblewrap."""
    write_bwrap(tmp_path, f"touch {tmp_path / 'tried'}")
    assert not find_sandbox("none", {"PATH": str(tmp_path)}).confines
    assert not (tmp_path / "tried").exists()


@pytest.mark.parametrize("system", ["missing", "too old", "as new"])
def test_the_bundled_bubblewrap_serves_where_the_systems_will_not_do(tmp_path: Path, system: str) -> None:
    """The system's bubblewrap comes first; if it is missing or lacks an option, the bundled one is used."""
    bundled = write_bwrap(tmp_path / "bundled", "echo 'bwrap 9.9'")
    if system != "missing":
        write_bwrap(tmp_path, "echo 'bwrap: Unknown option --disable-userns' >&2; exit 1")
    if system == "as new":
        write_bwrap(tmp_path, "echo 'bwrap 8.8'")
    sandbox = find_sandbox("auto", {"PATH": str(tmp_path)}, bundled=bundled)
    assert sandbox.version == ("bwrap 8.8" if system == "as new" else "bwrap 9.9")


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_the_bundled_bubblewrap_starts_from_a_folder_of_its_users_alone(tmp_path: Path, mode: int) -> None:
    """The bundled bubblewrap finds its library in a private folder, and guests of a root worker give up root."""
    packages = tmp_path / "packages"
    program = copy_bundled(packages)
    packages.chmod(mode)
    sandbox = find_sandbox("auto", {"PATH": str(tmp_path), "HOME": str(tmp_path)}, bundled=program)
    assert (sandbox.version.split()[0], sandbox.gives_up_root) == ("bubblewrap", os.geteuid() == 0)
    inside = sandbox.run(("/usr/bin/id", "-u"), GuestFiles(tmp_path), {"PATH": os.defpath}, 30.0)
    assert (inside.exit_code, inside.stdout.strip() == b"0") == (0, False)


@pytest.mark.needs("bubblewrap")
def test_a_worktree_below_the_other_folder_for_temporary_files_is_seen() -> None:
    """A worktree below `/var/tmp` is bound, although a guest's `/var/tmp` leads to its `/tmp`."""
    with tempfile.TemporaryDirectory(prefix="septet-", dir="/var/tmp") as folder:
        worktree = Path(folder)
        (worktree / "kept").write_text("kept", encoding="utf-8")
        sandbox = find_sandbox("auto", os.environ)
        argv = ("/bin/cat", str(worktree / "kept"))
        inside = sandbox.run(argv, GuestFiles(worktree), {"PATH": os.defpath}, 30.0)
    assert (inside.exit_code, inside.stdout) == (0, b"kept")


@pytest.mark.parametrize(("told", "words"), [("1\n", "distribution's"), ("0\n", "sysctl"), (None, "sysctl")])
def test_where_apparmor_restricts_namespaces_the_distributions_bubblewrap_is_named(
    tmp_path: Path, told: str | None, words: str
) -> None:
    """With AppArmor's restriction the advice is the distribution's bubblewrap, and no setting of the kernel."""
    if told is not None:
        (tmp_path / "restriction").write_text(told, encoding="ascii")
    assert words in how_to_allow(tmp_path / "restriction")


@pytest.mark.needs("root", "bwrap")
def test_a_worker_says_why_its_guests_remain_root(tmp_path: Path) -> None:
    """A bubblewrap that starts for root alone still confines, and the reason why guests remain root is known."""
    write_bwrap(tmp_path, f'exec {shutil.which("bwrap")} "$@"').chmod(0o700)
    sandbox = find_sandbox("auto", {"PATH": f"{tmp_path}:{os.defpath}"})
    assert (sandbox.confines, sandbox.gives_up_root) == (True, False)
    assert "Permission denied" in sandbox.remains_root
