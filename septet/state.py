"""The state directory: the paths of a host's files, and the host's id."""

import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from septet.errors import UsageError
from septet.system.durable import write_first

_TOKEN_BYTES: Final = 32
_OTHERS: Final = 0o077
"""The permission bits of group and others."""


def _below(name: str) -> cached_property[Path]:
    def path(state: "StateDir") -> Path:
        return state.root / name

    return cached_property(path)


@dataclass(frozen=True)
class StateDir:
    """The folders and files in `SEPTET_STATE_DIR`. Workers with the same directory count as one host."""

    root: Path

    mirrors = _below("mirrors")
    """The folder with one bare mirror for each repository."""
    workspaces = _below("workspaces")
    """The folder with one clone for each work order."""
    vaults = _below("vaults")
    """The folder with one repository of snapshots (a vault) for each repository."""
    restores = _below("restored")
    """The folder to which people restore snapshots if they name no other; only people remove these files."""
    runs = _below("runs")
    """The folder with one folder for each work order, which contains one folder for each agent run."""
    agent_homes = _below("agents")
    """The folder in which the scripted agent records its sessions."""
    homes = _below("homes")
    """The folder with the sessions of agents' CLIs, for each work order."""
    key_scanner = _below("scanner")
    """The folder of the compiled rules of the scanner for keys."""
    forge_pauses = _below("forge-pauses")
    """The folder of the pauses of forges, with a file for each used-up rate limit; the file's name is a hash."""
    logins = _below("logins")
    """The folder of records about copies of the user's logins; it holds no login."""
    packages = _below("packages")
    """The folder of the files that agents' CLIs have unpacked, which all work orders share."""
    scratch = _below("scratch")
    """The folder of temporary repositories."""
    tokens = _below("tokens")
    """The folder of Temporal's task tokens of the activities that run on this host."""
    base_checks = _below("base-checks")
    """The folder of base checks' results: one folder for each pair of a base commit and settings."""
    worker_lock = _below("worker.lock")
    """The lock that all workers of this host share while they run."""
    metrics_lock = _below("metrics.lock")
    """The lock by which only one worker of this host measures budgets."""
    held_turns = _below("held")
    """The folder of records of agents' turns whose use is not yet reported to the accounts of budgets."""
    cost_notes = _below("costs")
    """The folder of records of costs that are not yet in the history of their project."""
    runner = _below("runner")
    """The folder with the lock and the socket of the runner."""
    pipelines = _below("pipelines")
    """The folder with one folder for each pipeline, which contains its solutions, results and report."""
    trash = _below("removed")
    """The folder of files that are no longer needed and that the janitor removes."""
    janitor_file = _below("janitor.json")
    """The file with the time at which the janitor's last pass started."""
    server_file = _below("server.json")
    """The file with the address of the embedded server, for clients on this machine."""
    api_token_file = _below("api-token")
    """The file with the HTTP API's token, for clients of this user; no confined agent can read the file."""
    page_key_file = _below("page-key")
    """The file with the page's key, which stays valid after a restart of the page's server."""
    page_file = _below("open.html")
    """The file that `septet open` opens in a browser, so that no process argument contains the page's key."""
    health_file = _below("health.json")
    """The file with the time of the last worker poll that the server saw, for a container's health check."""
    server_log = _below("server.log")
    """The file with the output of the embedded server."""
    database = _below("temporal.db")
    """The file of the embedded server's database."""

    def prepare(self) -> None:
        """Create the folders for this user only, and remove permissions that an earlier release gave others.

        Raises:
            UsageError: The directory was copied or moved, but its contents still refer to the earlier path.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._refuse_other_path()
        for folder in (
            self.mirrors,
            self.workspaces,
            self.vaults,
            self.runs,
            self.agent_homes,
            self.homes,
            self.logins,
            self.packages,
            self.tokens,
            self.held_turns,
            self.cost_notes,
            self.runner,
            self.pipelines,
        ):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(PermissionError):  # a mounted volume may be another's
            for path in (self.root, *self.root.iterdir()):
                with suppress(FileNotFoundError):
                    status = path.lstat()
                    if not stat.S_ISLNK(status.st_mode) and status.st_mode & _OTHERS:
                        path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)

    def _refuse_other_path(self) -> None:
        """Raise if the state directory was moved, because its contents name the earlier path."""
        path, own = self.root / "path", os.path.abspath(self.root)  # noqa: PTH100 -- links on the way stay
        if not path.exists():
            write_first(path, os.fsencode(own))
        before = os.fsdecode(path.read_bytes())
        if before != own and not (os.path.exists(before) and os.path.samefile(before, own)):  # noqa: PTH110, PTH121
            message = f"{own} was at {before} before: its workspaces and snapshots still lead there."
            raise UsageError(message, remedy=f"Put it back, or make {before} a link to it.")

    def host_id(self) -> str:
        """Return this host's id; the first call creates it and writes it to a file."""
        return _once(self.root / "host-id", secrets.token_hex(6))

    def is_of_host(self, host: str) -> bool:
        """Return whether this is the state directory of the host with this id."""
        return (self.root / "host-id").exists() and self.host_id() == host

    def api_token(self) -> str:
        """Return the HTTP API's token, which the first call writes to a file for this user only."""
        return _once(self.api_token_file, secrets.token_urlsafe(_TOKEN_BYTES))

    def page_key(self) -> str:
        """Return the key that opens the page; the first call writes the key to a file for this user only."""
        return _once(self.page_key_file, secrets.token_hex(_TOKEN_BYTES))


def _once(path: Path, word: str) -> str:
    """Return the text in a file; if it is missing, write `word` first. Of two processes, only the first writes."""
    if not path.exists():
        write_first(path, f"{word}\n".encode("ascii"))
    return path.read_text(encoding="ascii").strip()
