"""The ways out that a guest tries; each with the one protection without which it succeeds."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from fakes.attack_tables import Attack, counted
from fakes.escape_git import GIT_ROUTES, PERSON_ROUTES, PROTECTED_ROUTES
from fakes.escape_homes import TRAPS
from fakes.guest_kinds import kind_attacks
from fakes.guests import Arguments
from fakes.leaving_routes import LEAVING_ROUTES, READER_ROUTES
from fakes.network_routes import network_attacks
from fakes.plan_routes import PLAN_ROUTES
from fakes.read_outgoing_routes import READING_ROUTES

from septet.agents.guest.description import Description
from septet.agents.guest.paths import OwnFolder
from septet.agents.guest.sandbox_parts import (
    Binding,
    Cover,
    NoCapabilities,
    OwnDevices,
    OwnHome,
    OwnNamespace,
    OwnProcesses,
    OwnTemporaryFiles,
    OwnUser,
    Protection,
    RefusedSystemCalls,
    SealedFolders,
)

Change = Callable[[Description, Path], Description]


@dataclass(frozen=True)
class Route(Attack):
    """A way out, whose program prints the canary if it succeeds."""

    without: Change
    """Removes the protection from a description of the guest."""
    as_root: bool = False
    """Whether the route matters only for a worker that runs as root."""


def with_needs(routes: Sequence[Route], *, root: bool = False) -> list[ParameterSet]:
    """Return routes as parameters of a test, each with its needs: a sandbox, a processor, perhaps root."""
    needs = (
        ("bubblewrap", *["x86-64"] * ("syscall(" in route.program), *["root"] * (root and route.as_root))
        for route in routes
    )
    pairs = zip(routes, needs, strict=True)
    return [pytest.param(route, id=route.name, marks=pytest.mark.needs(*each)) for route, each in pairs]


def removed(*kinds: type[Protection] | str) -> Change:
    """Return a change that removes protections: by class, or namespaces by kind."""

    def change(description: Description, root: Path) -> Description:
        return replace(
            description, protections=tuple(each for each in description.protections if not _is(each, kinds))
        )

    return change


def bound(path: str, *, instead_of: type[Protection] | None = None) -> Change:
    """Return a change that shows the guest a folder of the machine, before its root is sealed."""

    def change(description: Description, root: Path) -> Description:
        binding = Binding(root / path if not path.startswith("/") else Path(path), writable=True)
        parts: list[Protection] = []
        for each in description.protections:
            if isinstance(each, SealedFolders):
                parts.append(binding)
            if instead_of is None or not isinstance(each, instead_of):
                parts.append(each)
        return replace(description, protections=tuple(parts))

    return change


def swapped(kind: type[Protection], other: Protection) -> Change:
    """Return a change that puts another protection in the place of a kind."""

    def change(description: Description, root: Path) -> Description:
        parts = tuple(other if isinstance(each, kind) else each for each in description.protections)
        return replace(description, protections=parts)

    return change


PLAIN_PROCESSES = swapped(OwnProcesses, Arguments(("--proc", "/proc")))


def _is(protection: Protection, kinds: tuple[type[Protection] | str, ...]) -> bool:
    return any(
        protection.kind == kind if isinstance(kind, str) and isinstance(protection, OwnNamespace)
        else not isinstance(kind, str) and isinstance(protection, kind)
        for kind in kinds
    )  # fmt: skip


def _uncovered(description: Description, root: Path) -> Description:
    """Leave the folders that the careless settings name uncovered."""
    return swapped(SealedFolders, SealedFolders())(removed(Cover)(description, root), root)


def _all_capabilities(description: Description, root: Path) -> Description:
    rest = removed(NoCapabilities, RefusedSystemCalls, OwnUser)(description, root).protections
    return replace(description, protections=(*rest, Arguments(("--cap-add", "ALL"))))


def _writable_mirror(description: Description, root: Path) -> Description:
    objects = root / "state" / "mirrors" / "app.git" / "objects"
    parts = [
        Binding(each.path, writable=True) if isinstance(each, Binding) and each.path == objects else each
        for each in description.protections
    ]
    return replace(description, protections=tuple(parts))


def _state(name: str, attack: str, path: str, *, changes: bool = False) -> Route:
    program = f"change({path!r})" if changes else f"read({path!r})"
    return Route(name, attack, program, "the state directory is covered, whatever is named around it", _uncovered)


def _home(name: str, attack: str, path: str, *, changes: bool = False) -> Route:
    program = f"change({path!r})" if changes else f"read({path!r})"
    return Route(name, attack, program, "an empty home", bound("home", instead_of=OwnHome))


def _own_home(name: str, attack: str, path: str, *, changes: bool = False) -> Route:
    program = f"change({path!r})" if changes else f"read({path!r})"
    return Route(
        name, attack, program, "a separate home for each work order", bound("home/.claude", instead_of=OwnFolder)
    )


def _toolchain(name: str, attack: str, path: str, root: str, *, changes: bool = False) -> Route:
    program = f"change({path!r})" if changes else f"read({path!r})"
    closes = "toolchains are read-only" if changes else "programs and libraries of toolchains alone"
    return Route(name, attack, program, closes, bound(root))


def _call(name: str, attack: str, program: str) -> Route:
    return Route(name, attack, program, "refused system calls", removed(RefusedSystemCalls))


_CMDLINES = """
for name in os.listdir("/proc"):
    if name.isdecimal() and int(name) != os.getpid():
        read("/proc/" + name + "/cmdline")
"""
_MEMORY = """
libc.shmat.restype = ctypes.c_void_p
number = libc.shmget(memory_key, 4096, 0)
print(ctypes.string_at(libc.shmat(number, None, 0), 16).decode() if number >= 0 else "refused")
"""
_SIGNAL = """
try:
    os.kill(neighbour, 0)
    print(CANARY)
except OSError as error:
    print("refused:", error.strerror)
"""
_NESTED = "done(libc.unshare(0x10000000))"
_MOUNT = 'done(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))'

ROUTES = (
    _state("other-workspace", "read another work order's workspace", "state/workspaces/wo-2/secret"),
    _state("change-workspace", "change another work order's workspace", "state/workspaces/wo-2/secret", changes=True),
    _state("vault", "read the snapshots", "state/vaults/app.git/secret"),
    _state("change-vault", "change the snapshots", "state/vaults/app.git/secret", changes=True),
    _state("runs", "read the prompts and streams of agent runs", "state/runs/wo-1/secret"),
    _state("tokens", "read the task tokens of activities", "state/tokens/secret"),
    _state("api-token", "read the HTTP API's token", "state/api-token"),
    _state("database", "read the embedded server's database", "state/temporal.db"),
    _state("server-file", "lead clients to another server", "state/server.json", changes=True),
    _state("other-mirror", "read the code of another repository", "state/mirrors/other.git/objects/secret"),
    _state("mirror-settings", "change the settings of the mirror's git", "state/mirrors/app.git/config", changes=True),
    _state("pipelines", "read the results of a pipeline", "state/pipelines/p-1/secret"),
    Route(
        "mirror-objects", "change the objects that all work orders of a repository share",
        "change('state/mirrors/app.git/objects/own')", "the mirror's objects are read-only", _writable_mirror,
    ),
    _home("ssh-key", "read the user's ssh key", "home/.ssh/id_ed25519"),
    _home("netrc", "read `.netrc`", "home/.netrc"),
    _home("aws", "read the keys of a cloud", "home/.aws/credentials"),
    _home("gh", "read the login of `gh`", "home/.config/gh/hosts.yml"),
    _home("other-login", "read another CLI's login", "home/.codex/auth.json"),
    _home("other-keys", "read the keys that another CLI has in its settings", "home/.codex/config.toml"),
    _home("third-login", "read the login of a third CLI", "home/.gemini/oauth_creds.json"),
    _home("other-account", "read the login of another account of the same CLI", "home/.claude-work/.credentials.json"),
    _home("servers", "read the keys of the user's servers in `~/.claude.json`", "home/.claude.json"),
    _own_home("whole-login", "read what else the user's login file holds", "home/.claude/.credentials.json"),
    _own_home("settings-keys", "read the keys in the user's settings of its CLI", "home/.claude/settings.json"),
    _own_home("settings-hooks", "leave hooks for later runs of its CLI", "home/.claude/settings.json", changes=True),
    _own_home("commands", "change the user's commands of its CLI", "home/.claude/commands/own.md", changes=True),
    _own_home("user-sessions", "read the user's own conversations", "home/.claude/projects/-work/other.jsonl"),
    _state("order-sessions", "read another work order's conversation", "state/homes/wo-2/claude/.claude/projects/-work/other.jsonl"),
    _state("order-hooks", "leave hooks for another work order's agent", "state/homes/wo-2/claude/.claude/settings.json", changes=True),
    _state("order-login", "read the login that another CLI has for the same work order", "state/homes/wo-1/codex/.codex/auth.json"),
    _state("loans", "change where its login is written back", "state/logins/5d1f/wo-1.claude.json", changes=True),
    _home("history", "read the shell's history", "home/.bash_history"),
    _home("git-settings", "change the user's git settings", "home/.gitconfig", changes=True),
    _home("bashrc", "change `.bashrc`", "home/.bashrc", changes=True),
    _home("authorized-keys", "let a key in by ssh", "home/.ssh/authorized_keys", changes=True),
    _toolchain("cargo-login", "read cargo's login beside its programs", "home/.cargo/credentials.toml", "home/.cargo"),
    _toolchain("npm-login", "read npm's login in a version of node", "home/.nvm/versions/node/v22.1.0/etc/npmrc",
               "home/.nvm/versions"),
    _toolchain("pip-login", "read pip's login in a version of Python", "home/.pyenv/versions/3.12.1/pip.conf",
               "home/.pyenv/versions"),
    _toolchain("uv-login", "read uv's login beside its Pythons", "home/.local/share/uv/credentials/credentials.toml",
               "home/.local/share/uv"),
    _toolchain("cargo-program", "change a program of a toolchain", "home/.cargo/bin/cargo", "home/.cargo/bin",
               changes=True),
    _home("npmrc", "read npm's login", "home/.npmrc"),
    Route(
        "origin-hook", "leave a hook in an origin on disk", "change('origins/app.git/hooks/pre-receive')",
        "origins are not seen", bound("origins"),
    ),
    Route(
        "origin-settings", "change the settings of an origin on disk", "change('origins/app.git/config')",
        "origins are not seen", bound("origins"),
    ),
    Route(
        "temporary-files", "read the temporary files of others", "read('neighbour/secret')",
        "a private `/tmp`", bound("neighbour", instead_of=OwnTemporaryFiles),
    ),
    Route(
        "docker-socket", "reach docker by its socket", "connect(os.path.join(root, 'docker.sock'))",
        "no sockets of others", bound("docker.sock"),
    ),
    Route("processes", "see the arguments of other processes", _CMDLINES, "own processes", removed("pid")),
    Route("signal", "signal a process of the same user", _SIGNAL, "own processes", removed("pid")),
    Route("shared-memory", "read memory that programs share", _MEMORY, "own shared memory", removed("ipc")),
    Route(
        "host-name", "learn the machine's name", f"print(CANARY if os.uname().nodename == {os.uname().nodename!r} else '')",
        "a separate host name", removed("uts"),
    ),
    Route("nested-users", "become root of a new namespace", _NESTED, "no further namespaces of users", removed(OwnUser)),
    Route(
        "mount", "mount something over what it sees", _MOUNT, "no capabilities, and refused system calls",
        _all_capabilities,
        as_root=True,
    ),
    Route(
        "devices", "open a device of the machine",
        "print(CANARY if set(os.listdir('/dev')) - {'core', 'fd', 'full', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', "
        "'stdin', 'stdout', 'tty', 'urandom', 'zero', 'console'} else '')",
        "only harmless devices", bound("/dev", instead_of=OwnDevices),
    ),
    Route(
        "core-pattern", "have the kernel start the guest's program on the machine", "change('/proc/sys/kernel/core_pattern')",
        "the kernel's switches are read-only",
        PLAIN_PROCESSES,
        as_root=True,
    ),
    Route(
        "system", "change a program of the system", "print(CANARY if os.access('/usr/bin', os.W_OK) else '')",
        "the system is read-only", bound("/usr"), as_root=True,
    ),
    Route("shadow", "read the passwords of the machine", "print(CANARY if os.path.exists('/etc/shadow') else '')",
          "settings of the system by an allow-list", bound("/etc")),
    Route("tls-keys", "read the keys of this machine's TLS servers",
          "print(CANARY if any(map(os.path.exists, ('/etc/ssl/private', '/etc/pki/tls/private'))) else '')",
          "settings of the system by an allow-list", bound("/etc")),
    _call("ptrace", "take over the sandbox's own first process", "done(libc.ptrace(0x4206, 1, None, None))"),
    _call("keyring", "use the kernel's keys", "done(libc.syscall(250, 0, -3, 1))"),
    _call("io-uring", "bypass the filter with io_uring", "done(libc.syscall(425, 1, ctypes.create_string_buffer(120)))"),
    _call("vsock", "reach the hypervisor by a socket", "make_socket(40, socket.SOCK_STREAM)"),
    _call("other-memory", "read the memory of another process", "done(libc.syscall(312, os.getpid(), os.getpid(), 0, 0, 0))"),
)  # fmt: skip


def escape_table() -> str:
    return counted(
        {
            "read or change the machine, other work or other processes": _named(ROUTES),
            "leave traps in the home of its CLI, for the engine or later runs": _named(TRAPS),
            "have the engine's git run a program, read or wait": _named(GIT_ROUTES),
            "have a person's git run a program": _named(PERSON_ROUTES),
            "push commits that a receiving git refuses": _named(LEAVING_ROUTES),
            "pass files besides the plan to the implementor": _named(PLAN_ROUTES),
            "have CI or other agents act on a change": _named(PROTECTED_ROUTES.values()),
            "delay a reader of its texts": READER_ROUTES,
            "deceive the reader before each push": READING_ROUTES,
            "reach hosts and ports, or the model's key": network_attacks(),
            "read keys, as each kind of guest": kind_attacks(),
        }
    )


def _named(routes: Iterable[Any]) -> list[tuple[str, str]]:
    return [(each.attack, each.protection) for each in routes]
