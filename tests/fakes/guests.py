"""A machine with canaries, and guests that search them: real supervisors run each in a world that a test describes."""

import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
from fakes.shell_programs import write_program

from septet.agents.guest.description import Description, GuestFiles, World, describe
from septet.agents.guest.paths import NamedPath, OwnFolder
from septet.agents.outcomes.outcome import ExitRecord
from septet.agents.processes.order import Limits, Order, send_order
from septet.agents.sandbox.sandbox import Sandbox, find_sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.system.durable import lock, open_lock

CANARY = "canary-5d1f"
"""The content of everything that no guest may read."""
PROMPT = b"what is asked"
SECONDS = 20.0
_IPC_CREATE, _IPC_REMOVE = 0o1000, 0
_LIBC = ctypes.CDLL(None, use_errno=True)
OWN_HOME = "state/homes/wo-1/claude/.claude"
"""The guest's folder in place of the user's folder."""
_SECRETS = (
    "state/workspaces/wo-2/secret", "state/vaults/app.git/secret", "state/runs/wo-1/secret", "state/tokens/secret",
    "state/api-token", "state/temporal.db", "state/mirrors/other.git/objects/secret", "state/mirrors/app.git/config",
    "state/pipelines/p-1/secret", "state/agents/secret", "state/server.json",
    "home/.ssh/id_ed25519", "home/.netrc", "home/.aws/credentials", "home/.config/gh/hosts.yml", "home/.gitconfig",
    "home/.bashrc", "home/.claude/login", "home/.ssh/authorized_keys", "home/.codex/auth.json", "home/.bash_history",
    "home/.claude/.credentials.json", "home/.claude/settings.json", "home/.claude/commands/own.md",
    "home/.claude/projects/-work/other.jsonl", "home/.claude.json", "home/.claude-work/.credentials.json",
    "home/.codex/config.toml", "home/.gemini/oauth_creds.json",
    "state/homes/wo-2/claude/.claude/projects/-work/other.jsonl", "state/homes/wo-2/claude/.claude/settings.json",
    "state/homes/wo-1/codex/.codex/auth.json", "state/logins/5d1f/wo-1.claude.json",
    "origins/app.git/hooks/pre-receive", "origins/app.git/config", "neighbour/secret",
    "home/.cargo/credentials.toml", "home/.npmrc", "home/.nvm/versions/node/v22.1.0/etc/npmrc",
    "home/.pyenv/versions/3.12.1/pip.conf", "home/.local/share/uv/credentials/credentials.toml",
)  # fmt: skip
_TOOLCHAINS = (
    "home/.cargo/bin", "home/.nvm/versions/node/v22.1.0/bin", "home/.pyenv/shims", "home/.pyenv/versions/3.12.1/bin",
    "home/.local/share/uv/python/cpython-3.12.5/bin", "home/.local/bin",
)  # fmt: skip
"""Folders of the user's languages, which are on PATH."""
_PROGRAMS = ("home/.cargo/bin/cargo", "home/.local/bin/uv")
_OWN = ("state/workspaces/wo-1/own", "state/mirrors/app.git/objects/own", OWN_HOME + "/.credentials.json")


@dataclass(frozen=True)
class Arguments:
    """Arguments of the sandbox in place of a protection."""

    parts: tuple[str, ...]

    def arguments(self) -> tuple[str, ...]:
        return self.parts


@dataclass
class Machine:
    """A state directory, a home, an origin and neighbours with canaries, and one guest's own part of them."""

    root: Path
    sandbox: Sandbox
    supervisors: Supervisors
    neighbour: int = 0
    """A process of the same user, with the canary in its arguments and environment."""
    shared_memory_key: int = 0
    _runs: int = field(default=0)

    @property
    def files(self) -> GuestFiles:
        state = self.root / "state"
        return GuestFiles(
            state / "workspaces" / "wo-1",
            state / "mirrors" / "app.git" / "objects",
            (sys.executable,),
            {"PATH": os.pathsep.join([*(str(self.root / folder) for folder in _TOOLCHAINS), os.defpath])},
            home_folders=(OwnFolder(self.root / OWN_HOME, self.root / "home" / ".claude"),),
        )

    @property
    def description(self) -> Description:
        return describe(self.sandbox.world, self.files)

    @property
    def records(self) -> Path:
        return self.root / "records" / str(self._runs)

    def run(
        self,
        program: str,
        change: Callable[[Description], Description] = lambda each: each,
        *,
        remains_root: bool = False,
        resources: Mapping[str, int] | None = None,
    ) -> str:
        """Run a program as the guest without the protections that `change` removes; return its output and bad end."""
        sandbox = replace(self.sandbox, gives_up_root=False) if remains_root else self.sandbox
        self._runs += 1
        folder = self.records
        folder.mkdir(parents=True)
        (folder / "prompt.md").write_bytes(PROMPT)
        order = Order(
            folder=str(folder),
            directory=str(self.files.workspace),
            argv=(sys.executable, "-IS", "-c", PRELUDE.format(root=str(self.root), machine=self) + program),
            env={"PATH": os.defpath, "HOME": str(self.root / "home")},
            limits=Limits(SECONDS, SECONDS, orphan_seconds=0.0).with_resources(resources or {}),
        ).inside(sandbox.around(change(self.description)))
        locks = [open_lock(folder / name) for name in ("writer", "lock")]
        for descriptor in locks:
            lock(descriptor)
        connection = self.supervisors.connect()
        send_order(connection, order, locks)
        for descriptor in locks:
            os.close(descriptor)
        with connection as attached:
            attached.settimeout(SECONDS * 2)
            line = attached.makefile("rb").readline()
        record = msgspec.json.decode(line.removeprefix(b"ended "), type=ExitRecord)
        printed = (folder / "stdout.jsonl").read_text(encoding="utf-8", errors="replace")
        if (record.cause, record.exit_code) == ("exited", 0):
            return printed
        errors = (folder / "stderr.log").read_text(encoding="utf-8", errors="replace")
        return f"{printed}\nit ended otherwise: {record.cause} {record.why} {record.exit_code}\n{errors}"


PRELUDE = """\
import ctypes, os, socket, sys
root, neighbour, memory_key = {root!r}, {machine.neighbour}, {machine.shared_memory_key}
CANARY = "canary-" + "5d1f"
libc = ctypes.CDLL(None, use_errno=True)

def read(path):
    try:
        with open(os.path.join(root, path), "rb") as file:
            print(file.read(65536).decode("utf-8", "replace"))
    except OSError as error:
        print("refused:", error.strerror)

def change(path):
    try:
        os.close(os.open(os.path.join(root, path), os.O_WRONLY))
        print(CANARY)
    except OSError as error:
        print("refused:", error.strerror)

def done(result):
    print(CANARY if result >= 0 else "refused: " + os.strerror(ctypes.get_errno()))

def make_socket(*arguments):
    try:
        socket.socket(*arguments).close()
        print(CANARY)
    except OSError as error:
        print("refused:", error.strerror)

def connect(address):
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address)
            print(client.recv(100).decode())
    except OSError as error:
        print("refused:", error.strerror)

"""


@contextmanager
def machine_with_canaries(root: Path, supervisors: Supervisors) -> Iterator[Machine]:
    """Yield such a machine; its settings carelessly name the folder around its state directory."""
    for name in (*_SECRETS, *_OWN):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{CANARY}\n" if name in _SECRETS else "own\n", encoding="utf-8")
    for name in _TOOLCHAINS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in _PROGRAMS:
        write_program(root / name, "#!/bin/sh\n")
    sleeper = write_program(root / "sleeper", "#!/bin/sh\nwhile :; do sleep 1; done\n")
    with ExitStack() as stack:
        world = World(root / "home", (NamedPath(root / "state", writable=True),), (root / "state",))
        sandbox = find_sandbox("auto", os.environ, world)
        process = subprocess.Popen(
            ["sleep", "600", CANARY], env={"PATH": os.defpath, "KEY": CANARY}, executable=sleeper
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
        machine = Machine(root, sandbox, supervisors, process.pid, stack.enter_context(_shared_memory()))
        stack.enter_context(_listening(root / "docker.sock"))
        yield machine


@contextmanager
def _shared_memory() -> Iterator[int]:
    key = 0x5D1F0000 | (os.getpid() & 0xFFFF)
    number = _LIBC.shmget(key, 4096, _IPC_CREATE | 0o600)
    _LIBC.shmat.restype = ctypes.c_void_p
    address = _LIBC.shmat(number, None, 0)
    ctypes.memmove(address, CANARY.encode(), len(CANARY))
    try:
        yield key
    finally:
        _LIBC.shmdt(ctypes.c_void_p(address))
        _LIBC.shmctl(number, _IPC_REMOVE, None)


@contextmanager
def _listening(path: Path) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        pid = os.fork()
        if pid == 0:
            while True:
                client, _ = server.accept()
                client.sendall(CANARY.encode())
                client.close()
        try:
            yield
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
