"""What a program tries that is only a user of its own (`SEPTET_SANDBOX=uid`), and what is open to it and said to be."""

import json
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fakes.escape_homes import USER_TRAPS, Scene, text_for_user
from fakes.guests import CANARY, PRELUDE, Machine, world_of
from fakes.network_routes import PRELUDE as NETWORK_PRELUDE
from fakes.network_routes import Servers
from fakes.waiting import until

from septet.agents.runs.folders import Runs
from septet.agents.turns.guest_run import GuestCommand, GuestRunner
from septet.agents.turns.sandbox import Sandbox, find_sandbox
from septet.agents.turns.separate_users import UserPlaces, new_user
from septet.system.locks import open_lock

SECONDS = 60.0
_PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or "/usr/bin/python3"
"""One that every user can start."""
_STATE = "the state directory is closed to other users than the worker's"
_ROOTS = "files of root's alone"
_RUNS = "another user for each run"
_CALLS = "refused system calls"
_LIMITS = "`process_limit`"
_MARK = "== "
_LIMIT = 30
"""Of processes, for one run."""
_AT_WORK = """
import os, time
for path in ("own", os.path.join(os.environ["HOME"], "own")):
    with open(path, "w") as file:
        file.write("{canary}")
with open("pid.new", "w") as file:
    file.write(str(os.getpid()))
os.rename("pid.new", "pid")
while not os.path.exists("stop"):
    time.sleep(0.02)
"""


@dataclass(frozen=True)
class UserRoute:
    """One way, with what closes it, for people; nothing does where that is empty."""

    name: str
    attack: str
    program: str
    protection: str = ""


def _read(name: str, attack: str, path: str, protection: str = _STATE) -> UserRoute:
    return UserRoute(name, attack, f"read({path!r})", protection)


def _change(name: str, attack: str, path: str, protection: str = _STATE) -> UserRoute:
    return UserRoute(name, attack, f"change({path!r})", protection)


def _call(name: str, attack: str, program: str) -> UserRoute:
    return UserRoute(name, attack, program, _CALLS)


_SIGNAL = """
try:
    os.kill({pid}, 0)
    print(CANARY)
except OSError as error:
    print("refused:", error.strerror)
"""
_IN_ALL_PROCESSES = """
for name in os.listdir("/proc"):
    if name.isdecimal() and int(name) not in (os.getpid(), os.getppid()):
        try:
            with open("/proc/" + name + "/{file}", "rb") as file:
                print(CANARY if CANARY.encode() in file.read() else "not there")
        except OSError as error:
            print("refused:", error.strerror)
"""
_SETUID = """
open("left", "w").close()
try:
    os.chmod("left", 0o4755)
    print(CANARY)
except OSError as error:
    print("refused:", error.strerror)
"""
_MANY = """
children = []
try:
    for _ in range(60):
        pid = os.fork()
        if pid == 0:
            import time
            time.sleep(30)
            os._exit(0)
        children.append(pid)
    print(CANARY)
except OSError as error:
    print("refused:", error.strerror)
for pid in children:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
"""
USER_ROUTES = (
    _read("pipelines", "read the results of a pipeline", "state/pipelines/p-1/secret"),
    _change("change-pipelines", "change them", "state/pipelines/p-1/secret"),
    _read("vault", "read the snapshots", "state/vaults/app.git/secret"),
    _change("change-vault", "change the snapshots", "state/vaults/app.git/secret"),
    _read("runs", "read the prompts and streams of agent runs", "state/runs/wo-1/secret"),
    _read("tokens", "read the task tokens of activities", "state/tokens/secret"),
    _read("api-token", "read the HTTP API's token", "state/api-token"),
    _read("database", "read the embedded server's database", "state/temporal.db"),
    _change("server-file", "lead clients to another server", "state/server.json"),
    _read("other-mirror", "read the code of another repository", "state/mirrors/other.git/objects/secret"),
    _change("mirror-settings", "change the settings of the mirror's git", "state/mirrors/app.git/config"),
    _change("mirror-objects", "change the objects that all work orders of a repository share", "state/mirrors/app.git/objects/own"),
    _read("order-sessions", "read another work order's conversation", "state/homes/wo-2/claude/.claude/projects/-work/other.jsonl"),
    _change("loans", "change where a login is written back", "state/logins/5d1f/wo-1.claude.json"),
    _read("ssh-key", "read the user's ssh key", "home/.ssh/id_ed25519", _ROOTS),
    _read("login", "read the user's login of a CLI", "home/.codex/auth.json", _ROOTS),
    _change("bashrc", "change `.bashrc`", "home/.bashrc", _ROOTS),
    _change("origin-hook", "leave a hook in an origin on disk", "origins/app.git/hooks/pre-receive", _ROOTS),
    UserRoute("docker-socket", "reach docker by its socket", "connect(os.path.join(root, 'docker.sock'))", _ROOTS),
    UserRoute("shadow", "read the passwords of the machine", "print(CANARY if os.access('/etc/shadow', os.R_OK) else 'refused')", _ROOTS),
    UserRoute("system", "change a program of the system", "print(CANARY if os.access('/usr/bin', os.W_OK) else 'refused')", _ROOTS),
    _read("run-workspace", "read the workspace of a run that is at work", "state/workspaces/wo-2/own", _RUNS),
    _change("change-run", "change it", "state/workspaces/wo-2/own", _RUNS),
    _read("run-home", "read that run's home", "state/homes/wo-2/checks/own", _RUNS),
    UserRoute("run-keys", "read the keys in that run's environment", "read('/proc/' + other + '/environ')", _RUNS),
    UserRoute("run-memory", "read that run's memory", "change('/proc/' + other + '/mem')", _RUNS),
    UserRoute("run-signal", "signal that run", _SIGNAL.format(pid="int(other)"), _RUNS),
    UserRoute("worker-keys", "read the keys in any process's environment, the worker's too", _IN_ALL_PROCESSES.format(file="environ"), _RUNS),
    UserRoute("worker-signal", "signal a process of the worker's user", _SIGNAL.format(pid="neighbour"), _RUNS),
    _call("setuid", "leave a program that runs as its owner", _SETUID),
    _call("keyring", "use the kernel's keys", "done(libc.syscall(250, 0, -3, 1))"),
    _call("io-uring", "bypass the filter with io_uring", "done(libc.syscall(425, 1, ctypes.create_string_buffer(120)))"),
    _call("vsock", "reach the hypervisor by a socket", "make_socket(40, socket.SOCK_STREAM)"),
    UserRoute("processes", "use it up: processes", _MANY, _LIMITS),
)  # fmt: skip

OPEN_ROUTES = (
    UserRoute("loopback", "reach what listens on this machine's loopback", "talk(socket.AF_INET, ('127.0.0.1', tcp))"),
    UserRoute("datagrams", "send datagrams to this machine", "talk(socket.AF_INET, ('127.0.0.1', udp), socket.SOCK_DGRAM)"),
    UserRoute("abstract-socket", "reach a socket that has no path", "talk(socket.AF_UNIX, chr(0) + abstract)"),
    UserRoute("who-listens", "see who listens on this machine", "print(CANARY if f':{tcp:04X}' in open('/proc/net/tcp').read() else '')"),
    UserRoute("public-file", "read a file that every user may read", "read('neighbour/secret')"),
    UserRoute("arguments", "see the arguments of other processes", _IN_ALL_PROCESSES.format(file="cmdline")),
    UserRoute("host-name", "learn the machine's name", f"print(CANARY if os.uname().nodename == {os.uname().nodename!r} else '')"),
)  # fmt: skip
"""What such a user is not kept from, and the documents do not promise."""
_NOT_CLOSED = "**nothing**: it is not promised"


@dataclass
class UserMachine:
    """A machine with canaries whose guests are users of their own, one of them at work."""

    machine: Machine
    servers: Servers
    sandbox: Sandbox
    other: int = 0
    """The process of the run that is at work."""
    _runs: int = 0

    @property
    def workspace(self) -> Path:
        """Where the guest works that tries the routes."""
        return self.machine.files.workspace

    def run(self, argv: Sequence[str], sandbox: Sandbox, workspace: Path | None = None, processes: int = 0) -> str:
        """Run a program as checks are run, and return what it printed."""
        self._runs += 1
        records = self.machine.root / "records" / str(self._runs)
        records.mkdir(parents=True)
        lock = open_lock(records / "writer")
        try:
            runner = GuestRunner(
                Runs(self.machine.root / "state" / "runs"),
                self.machine.supervisors,
                sandbox,
                records / "checks",
                self.machine.files.objects,
                lock,
                {"processes": processes} if processes else {},
            )
            env = {"PATH": os.defpath, "KEY": CANARY} if workspace else {"PATH": os.defpath}
            return runner.run(GuestCommand(tuple(argv), env, workspace or self.workspace, SECONDS)).output
        finally:
            os.close(lock)

    def try_all(self, routes: Sequence[UserRoute]) -> dict[str, str]:
        """Return what each route's program printed, tried as the product starts guests here."""
        return _by_route(self.run(self._argv(routes), self.sandbox, processes=_LIMIT))

    def try_without(self, routes: Sequence[UserRoute], protection: str) -> dict[str, str]:
        """Return the same with one protection taken away, in a start of the test's own."""
        argv = self._argv(routes)
        if protection in {_CALLS, _LIMITS}:
            state = self.machine.root / "state"
            home = state / "homes" / self.workspace.name / "checks"
            places = UserPlaces(state, self.workspace, home, self.machine.files.objects, keeps_home=False)
            *start, text = places.command(new_user(), (), 0 if protection == _LIMITS else _LIMIT)
            given = json.loads(text) | ({"system_calls": ""} if protection == _CALLS else {})
            argv = (*start, json.dumps(given), *argv)
        return _by_route(self.run(argv, Sandbox()))

    def leave(self, scene: Scene, program: str) -> str:
        """Run a program as a user whose home this is, and return what it printed."""
        places = UserPlaces(self.machine.root / "state", self.workspace, scene.home.root)
        argv = (_PYTHON, "-IS", "-c", text_for_user(scene, program))
        return self.run(places.command(new_user(), argv), Sandbox())

    def _argv(self, routes: Sequence[UserRoute]) -> tuple[str, ...]:
        prelude = PRELUDE.format(root=str(self.machine.root), machine=self.machine)
        prelude += NETWORK_PRELUDE.format(servers=self.servers) + f"other = {str(self.other)!r}\n"
        programs = [(each.name, each.program) for each in routes]
        return (_PYTHON, "-IS", "-c", f"{prelude}\n{_TRY_EACH.format(programs=programs, mark=_MARK)}")


_TRY_EACH = """
import traceback
for name, program in {programs!r}:
    print({mark!r} + name, flush=True)
    pid = os.fork()
    if pid == 0:
        try:
            exec(program)
        except BaseException:
            traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(pid, 0)
"""


def _by_route(printed: str) -> dict[str, str]:
    texts = (part.partition("\n") for part in f"\n{printed}".split(f"\n{_MARK}")[1:])
    return {name: words for name, _, words in texts}


@contextmanager
def users_of(machine: Machine, servers: Servers) -> Iterator[UserMachine]:
    """Close the machine's state directory and home as the product and systems do, and have one run at work."""
    for name in ("state", "home"):
        (machine.root / name).chmod(0o700)
    made = UserMachine(machine, servers, find_sandbox("uid", os.environ, world_of(machine.root)))
    workspace = machine.root / "state" / "workspaces" / "wo-2"
    argv = (_PYTHON, "-IS", "-c", _AT_WORK.format(canary=CANARY))
    at_work = threading.Thread(target=made.run, args=(argv, made.sandbox, workspace))
    at_work.start()
    try:
        made.other = int(until(lambda: (workspace / "pid").read_text() if (workspace / "pid").exists() else None))
        yield made
    finally:
        (workspace / "stop").touch()
        at_work.join()


def user_table() -> str:
    """Return the table of these routes as the documents have it."""
    routes = (*USER_ROUTES, *USER_TRAPS, *OPEN_ROUTES)
    rows = [(each.attack, each.protection or _NOT_CLOSED) for each in routes]
    lines = "".join(f"| {attack} | {protection} |\n" for attack, protection in rows)
    return f"| what is tried | what closes it |\n| --- | --- |\n{lines}"
