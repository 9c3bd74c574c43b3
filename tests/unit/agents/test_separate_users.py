"""Guests that are users of their own: what root's mode of files keeps from them, and that nothing of them is left."""

import asyncio
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from fakes.agent_lab import Lab, supervisor_of
from fakes.waiting import wait_until

from septet.agents.guest.description import World
from septet.agents.homes.home import Homes
from septet.agents.homes.logins import Logins
from septet.agents.supervisor.own_user import FIRST_USER
from septet.agents.turns.sandbox import find_sandbox
from septet.agents.turns.separate_users import UserPlaces, check_program, new_user
from septet.errors import AgentError, SandboxError
from septet.state import GUESTS_GROUP, StateDir

pytestmark = pytest.mark.needs("root")


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user may enter, as a state directory needs it; those of pytest are root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="septet-users-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def state(public: Path) -> StateDir:
    """A state directory with the workspaces and homes of two work orders, and two mirrors."""
    made = StateDir(public / "state")
    made.prepare()
    made.api_token()
    for order in ("wo-1", "wo-2"):
        (made.workspaces / order).mkdir(mode=0o700)
        (made.workspaces / order / "file").write_text(f"of {order}", encoding="utf-8")
        (made.homes / order).mkdir()
        (made.homes / order / "other").write_text("a session", encoding="utf-8")
    for mirror in ("own", "other"):
        objects = made.mirrors / f"{mirror}.git" / "objects"
        objects.mkdir(parents=True)
        (objects / "object").write_text(f"of {mirror}", encoding="utf-8")
        (objects / "object").chmod(0o400)
    return made


def run(state: StateDir, script: str, user: int = 0) -> str:
    """Run a script as a user of its own in the workspace of `wo-1`, and return what it printed on both streams."""
    places = UserPlaces(
        state.root,
        state.workspaces / "wo-1",
        state.homes / "wo-1" / "agent",
        state.mirrors / "own.git" / "objects",
    )
    argv = places.command(user or new_user(), ("/bin/sh", "-c", script), process_limit=200)
    env = places.environment({"PATH": os.defpath, "KEPT": "yes"})
    done = subprocess.run(argv, env=env, cwd=places.worktree, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_it_has_its_workspace_its_home_and_the_mirrors_objects(state: StateDir) -> None:
    """What it is given it finds at its usual path; the objects it only reads."""
    objects = state.mirrors / "own.git" / "objects"
    printed = run(
        state,
        f"cat {state.workspaces}/wo-1/file; echo new > {state.workspaces}/wo-1/new; echo > $HOME/kept; ls -A $TMPDIR;"
        f"cat {objects}/object; touch {objects}/new; chmod 600 {objects}/object",
    )
    assert printed.startswith("of wo-1of own")
    assert printed.count("Permission denied") + printed.count("Operation not permitted") == 2
    assert (state.workspaces / "wo-1" / "new").read_text(encoding="utf-8") == "new\n"


@pytest.mark.parametrize(
    "path",
    [
        "api-token", "workspaces/wo-2/file", "workspaces/wo-2/new", "homes/wo-2/other", "homes/wo-1/other",
        "mirrors/other.git/objects/object", "runs", "vaults", "workspaces", "homes", "mirrors", "",
    ],
)  # fmt: skip
def test_it_reads_and_lists_nothing_of_others(state: StateDir, path: str) -> None:
    """Neither by a name that it knows, nor by looking for one."""
    place = state.root / path
    printed = run(state, f"cat {place}; ls -A {place}/; echo x >> {place}").splitlines()
    refusals = ("Permission denied", "Is a directory", "Not a directory")
    assert [line for line in printed if not line.endswith(refusals)] == []
    assert "Permission denied" in printed[0] + printed[1]


def test_it_is_an_ordinary_user_for_ever(state: StateDir) -> None:
    """No capability, no way to another user, a filter of system calls, and no environment but its own."""
    printed = run(state, "id -u; id -G; grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; env")
    user, groups = printed.splitlines()[:2]
    assert int(user) > FIRST_USER
    assert user in groups
    assert str(GUESTS_GROUP) in groups
    for line in ("CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
        assert line in printed
    assert f"HOME={state.homes}/wo-1/agent" in printed


def test_each_run_is_another_user_and_goes_on_with_what_the_one_before_left(state: StateDir) -> None:
    """The files change hands, whatever their modes; the one before has no right to them any more."""
    first, second = new_user(), new_user()
    run(state, "mkdir closed; echo one > closed/file; chmod 500 closed; umask 077; echo s > $HOME/session", first)
    assert "ones" in run(state, "cat closed/file | tr -d '\\n'; cat $HOME/session", second)
    owner = (state.workspaces / "wo-1" / "closed" / "file").stat().st_uid
    assert (owner, first != second) == (second, True)


def test_no_link_that_a_guest_leaves_gives_it_a_file_of_others(state: StateDir) -> None:
    """Neither a symbolic nor a hard one: what they lead to stays root's."""
    secret = state.root / "api-token"
    workspace = state.workspaces / "wo-1"
    (workspace / "soft").symlink_to(secret)
    (workspace / "hard").hardlink_to(secret)
    (state.homes / "wo-1" / "agent").mkdir()
    (state.homes / "wo-1" / "agent" / ".tmp").symlink_to(state.runs)
    (state.runs / "kept").touch()
    printed = run(state, "cat soft; cat hard")
    assert printed.count("Permission denied") == 2
    assert (secret.stat().st_uid, stat.S_IMODE(secret.stat().st_mode)) == (0, 0o600)
    assert (state.runs / "kept").exists()
    assert state.runs.stat().st_uid == 0


def test_a_later_start_of_a_worker_leaves_the_way_open(state: StateDir) -> None:
    """The state directory is prepared by each command: guests that run pass on, and nobody else."""
    run(state, "true")
    state.prepare()
    assert stat.S_IMODE(state.root.stat().st_mode) == 0o710
    assert stat.S_IMODE((state.root / "api-token").stat().st_mode) == 0o600
    (state.root / "later").touch(mode=0o666)
    state.prepare()
    assert (state.root / "later").stat().st_mode & 0o077 == 0


def test_a_state_directory_that_others_cannot_pass_is_refused(public: Path) -> None:
    """By its setting's name, with what helps."""
    closed = public / "closed"
    closed.mkdir(mode=0o700)
    world = World(public / "home", covered=(closed / "state",))
    with pytest.raises(SandboxError, match="SEPTET_SANDBOX=uid: no run can be a separate user") as raised:
        find_sandbox("uid", {"PATH": os.defpath}, world)
    assert "every user may enter" in raised.value.remedy


@pytest.fixture
def separate(public: Path, lab: Lab) -> Lab:
    """A host whose agents are users of their own."""
    state = StateDir(public / "state")
    state.prepare()
    moved = Lab(public, replace(lab.runtime, homes=Homes(state.homes, Logins(state.logins))))
    sandbox = find_sandbox("uid", {"PATH": os.defpath}, World(public, covered=(state.root,)))
    moved.runtime = replace(moved.runtime, sandbox=sandbox)
    (public / "worktree").mkdir(mode=0o700)
    (public / "journal").touch(mode=0o666)
    (public / "journal").chmod(0o666)
    return moved


_PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
"""The tests' own may lie in a home."""


def _agent(lab: Lab, body: str) -> None:
    """Write an agent's program where every user can read it."""
    lab.agent(body)
    program = lab.root / "agent"
    text = program.read_text(encoding="utf-8").partition("\n")
    program.write_text(f"#!{_PYTHON} -IS\n{text[2]}", encoding="utf-8")
    program.chmod(0o755)


async def test_an_agent_that_is_a_user_of_its_own_works_and_its_record_says_so(separate: Lab) -> None:
    """It cannot read what is root's, and the next run of the work order has another user."""
    (separate.root / "secret").write_text("canary", encoding="utf-8")
    (separate.root / "secret").chmod(0o600)
    _agent(
        separate,
        """
        try:
            seen = open(os.path.join(os.path.dirname(os.getcwd()), "secret")).read()
        except OSError as error:
            seen = error.strerror
        open("made", "w").write("made")
        init()
        result("%d %s" % (os.getuid(), seen))
        """,
    )
    turn = await separate.carry_out()
    assert turn.run.record is not None
    assert (turn.run.record.sandbox, turn.outcome.text) == ("uid", f"{turn.run.record.user} Permission denied")
    assert (separate.worktree / "made").read_text(encoding="utf-8") == "made"


async def test_nothing_of_such_an_agent_outlives_its_killed_supervisor(separate: Lab) -> None:
    """Also what made a session of its own and cleared its environment: it has the run's user."""
    _agent(
        separate,
        """
        def stay():
            program = "import time; open('stays', 'w').close(); time.sleep(300)"
            os.execve(sys.executable, ["python", "-IS", "-c", program, os.path.abspath("escaped")], {})

        init()
        if not resumed:
            detached(stay)
            wait_for("stays")
            turn("m1")
            time.sleep(300)
        result("done")
        """,
    )
    attempt = asyncio.ensure_future(separate.carry_out())
    run = await separate.said("assistant")
    assert run.record is not None
    user = run.record.user
    assert len(_of(user)) >= 2
    os.kill(supervisor_of(run), signal.SIGKILL)
    await attempt
    await wait_until(lambda: _of(user) == [])
    assert separate.journal == ["start new", "start resume"]


def _of(user: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.uids().real == user and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize("in_closed", ["agent", "interpreter"])
def test_a_program_that_others_cannot_start_is_refused_with_the_place_and_a_remedy(
    public: Path, in_closed: str
) -> None:
    """Also where its interpreter is the one that they cannot: before anything is started."""
    closed = public / "closed"
    closed.mkdir(mode=0o700)
    interpreter = (closed if in_closed == "interpreter" else public) / "sh"
    shutil.copy("/bin/sh", interpreter)
    program = (closed if in_closed == "agent" else public) / "agent"
    program.write_text(f"#!{interpreter}\n", encoding="utf-8")
    program.chmod(0o755)
    with pytest.raises(AgentError) as refused:
        check_program("claude", (str(program),), {})
    assert f"start {program}" in str(refused.value)
    assert f"only its owner may enter or read {closed}." in str(refused.value)
    assert "such as /opt, and name it with SEPTET_CLAUDE_PATH" in (refused.value.remedy or "")
    closed.chmod(0o711)
    check_program("claude", (str(program),), {})


def test_a_state_directory_that_others_cannot_enter_is_refused_with_the_place(public: Path) -> None:
    """The folder is named that has to be opened, or left."""
    closed = public / "closed"
    closed.mkdir(mode=0o700)
    world = World(public, (), (closed / "state",))
    with pytest.raises(SandboxError, match=f"other users may not enter {closed}, in which the state directory"):
        find_sandbox("uid", os.environ, world)
