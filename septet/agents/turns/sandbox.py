"""The sandbox around agents: bubblewrap, which gives each of them a pid namespace and its own view of the disk.

When the first process of a pid namespace ends, the kernel kills every other one in it, whatever session it made
for itself and whatever environment it has.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.errors import SandboxError
from septet.system import processes

_PROGRAM: Final = "bwrap"
_START_SECONDS: Final = 10.0
_INSTALL: Final = "Install bubblewrap (`apt-get install bubblewrap`)."
_ALLOW: Final = (
    "Let this user make user namespaces (sysctl `user.max_user_namespaces`, "
    "`kernel.unprivileged_userns_clone`, `kernel.apparmor_restrict_unprivileged_userns`); a container needs leave "
    "for it too (docs/containers.md)."
)
_AS_IT_IS: Final = ("--bind", "/", "/", "--dev-bind", "/dev", "/dev")
_OWN_PROCESSES: Final = ("--unshare-pid", "--proc", "/proc", "--die-with-parent")
_WITHOUT_MOUNTS: Final = ("--cap-drop", "CAP_SYS_ADMIN")
"""Root could take away what lies over the vaults."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How a host's agents are confined, or why they are not."""

    program: str | None = None
    """Bubblewrap's absolute path; `None`: agents run unconfined."""
    version: str = ""
    reason: str = ""
    """Why they run unconfined."""
    remedy: str = ""
    read_only: tuple[Path, ...] = ()
    hidden_paths: tuple[Path, ...] = ()
    """Folders that are empty for agents, and files that they cannot read."""

    @property
    def confines(self) -> bool:
        """Whether agents run in it."""
        return self.program is not None

    @property
    def kind(self) -> str:
        """What a run's record says of it: `bwrap` or `none`."""
        return "bwrap" if self.confines else "none"

    def around(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return the arguments that start a program inside; the working directory stays the same."""
        if self.program is None:
            return tuple(argv)
        read_only = [part for path in self.read_only for part in ("--ro-bind", *2 * (str(path.resolve()),))]
        hidden_paths = [part for path in self.hidden_paths for part in _hiding(path.resolve())]
        privileges = _WITHOUT_MOUNTS if os.getuid() == 0 else ()
        return (self.program, *_AS_IT_IS, *_OWN_PROCESSES, *read_only, *hidden_paths, *privileges, "--", *argv)


def _hiding(path: Path) -> tuple[str, ...]:
    return ("--ro-bind", os.devnull, str(path)) if path.is_file() else ("--tmpfs", str(path))


def find_sandbox(
    setting: str,
    env: Mapping[str, str],
    *,
    read_only: tuple[Path, ...] = (),
    hidden_paths: tuple[Path, ...] = (),
) -> Sandbox:
    """Return the sandbox that this host can give; the setting is `auto`, `bwrap` or `none`.

    Raises:
        SandboxError: Bubblewrap is demanded, and does not start here.
    """
    if setting == "none":
        return Sandbox(reason="The setting is `none`.", remedy="Set SEPTET_SANDBOX=auto.")
    sandbox = _try_sandbox(env, read_only, hidden_paths)
    if setting == "bwrap" and sandbox.program is None:
        raise SandboxError(f"SEPTET_SANDBOX=bwrap: {sandbox.reason}", remedy=sandbox.remedy)
    return sandbox


def _try_sandbox(env: Mapping[str, str], read_only: tuple[Path, ...], hidden_paths: tuple[Path, ...]) -> Sandbox:
    """Start bubblewrap once, just as agents will be started."""
    path = shutil.which(_PROGRAM, path=env.get("PATH", os.defpath))
    if path is None:
        return Sandbox(reason="`bwrap` was not found on PATH.", remedy=_INSTALL)
    sandbox = Sandbox(str(Path(path).absolute()), read_only=read_only, hidden_paths=hidden_paths)
    try:
        trial = processes.run(sandbox.around([path, "--version"]), env=env, timeout_seconds=_START_SECONDS)
    except OSError as error:
        return Sandbox(reason=f"{path} does not start: {error.strerror}.", remedy=_INSTALL)
    if trial.exit_code != 0:
        words = trial.stderr.decode(errors="replace").strip() or f"exit code {trial.exit_code}"
        return Sandbox(reason=f"{path} cannot make a sandbox here: {words[-300:]}.", remedy=_ALLOW)
    return Sandbox(sandbox.program, trial.stdout.decode().strip(), read_only=read_only, hidden_paths=hidden_paths)
