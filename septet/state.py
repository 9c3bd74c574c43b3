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
"""The permissions of the group and of all others."""


@dataclass(frozen=True)
class StateDir:
    """The folders under `SEPTET_STATE_DIR`. The host is this directory, not the machine."""

    root: Path

    @cached_property
    def mirrors(self) -> Path:
        """One bare mirror for each repository."""
        return self.root / "mirrors"

    @cached_property
    def workspaces(self) -> Path:
        """One clone for each work order."""
        return self.root / "workspaces"

    @cached_property
    def vaults(self) -> Path:
        """One repository of snapshots for each repository."""
        return self.root / "vaults"

    @cached_property
    def restores(self) -> Path:
        """Snapshots that people restored without naming a folder; only people remove them."""
        return self.root / "restored"

    @cached_property
    def runs(self) -> Path:
        """One folder for each work order, with one for each agent run."""
        return self.root / "runs"

    @cached_property
    def agent_homes(self) -> Path:
        """The scripted agent's memory of its sessions."""
        return self.root / "agents"

    @cached_property
    def homes(self) -> Path:
        """The sessions of agents' CLIs, for each work order."""
        return self.root / "homes"

    @cached_property
    def key_scanner(self) -> Path:
        """The compiled rules of the scanner for keys."""
        return self.root / "scanner"

    @cached_property
    def forge_pauses(self) -> Path:
        """The pauses of forges: a file for each used-up limit, named by a hash."""
        return self.root / "forge-pauses"

    @cached_property
    def logins(self) -> Path:
        """The records of the user's logins that are lent to agents, without the logins themselves."""
        return self.root / "logins"

    @cached_property
    def packages(self) -> Path:
        """The files that agents' CLIs have unpacked, for all work orders."""
        return self.root / "packages"

    @cached_property
    def scratch(self) -> Path:
        """Temporary repositories."""
        return self.root / "scratch"

    @cached_property
    def tokens(self) -> Path:
        """The task tokens of the activities that run here."""
        return self.root / "tokens"

    @cached_property
    def base_checks(self) -> Path:
        """The results of repositories' checks before any work: a folder for each base commit and settings."""
        return self.root / "base-checks"

    @cached_property
    def worker_lock(self) -> Path:
        """The lock that all workers of this host share while they run."""
        return self.root / "worker.lock"

    @cached_property
    def metrics_lock(self) -> Path:
        """The lock of the worker of this host that measures budgets for all hosts."""
        return self.root / "metrics.lock"

    @cached_property
    def held_turns(self) -> Path:
        """Turns of agents whose use was not reported to the accounts of their budgets yet."""
        return self.root / "held"

    @cached_property
    def cost_notes(self) -> Path:
        """The costs of agents that were not reported to the history of their project yet."""
        return self.root / "costs"

    @cached_property
    def runner(self) -> Path:
        """The lock and the socket of the runner."""
        return self.root / "runner"

    @cached_property
    def pipelines(self) -> Path:
        """One folder for each pipeline: its solutions, results and report."""
        return self.root / "pipelines"

    @cached_property
    def trash(self) -> Path:
        """Files that the janitor is about to remove; nothing needs them any more."""
        return self.root / "removed"

    @cached_property
    def janitor_file(self) -> Path:
        """The start of the janitor's last pass."""
        return self.root / "janitor.json"

    @cached_property
    def server_file(self) -> Path:
        """The address of the embedded server, for clients on this machine."""
        return self.root / "server.json"

    @cached_property
    def api_token_file(self) -> Path:
        """The HTTP API's token, for clients of this user; no confined agent can read it."""
        return self.root / "api-token"

    @cached_property
    def page_key_file(self) -> Path:
        """The page's key, which opens the page after each start of its server."""
        return self.root / "page-key"

    @cached_property
    def page_file(self) -> Path:
        """The file that `septet open` gives a browser: it leads to the page without the key in an argument."""
        return self.root / "open.html"

    @cached_property
    def health_file(self) -> Path:
        """The time of the last poll by this host's worker that the server saw, for a container's health check."""
        return self.root / "health.json"

    @cached_property
    def server_log(self) -> Path:
        """The output of the embedded server."""
        return self.root / "server.log"

    @cached_property
    def database(self) -> Path:
        """The embedded server's database."""
        return self.root / "temporal.db"

    def prepare(self) -> None:
        """Make the folders, for this user only, and close paths that an earlier release left open to others.

        Raises:
            UsageError: The directory was copied or moved: its contents still refer to the earlier path.
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
                _close_to_others(path)

    def _refuse_other_path(self) -> None:
        """Refuse to serve from another path than at first, because work would be done at the earlier path."""
        path, own = self.root / "path", os.path.abspath(self.root)  # noqa: PTH100 -- links on the way stay
        if not path.exists():
            write_first(path, os.fsencode(own))
        before = os.fsdecode(path.read_bytes())
        if before != own and not (os.path.exists(before) and os.path.samefile(before, own)):  # noqa: PTH110, PTH121
            message = f"{own} was at {before} before: its workspaces and snapshots still lead there."
            raise UsageError(message, remedy=f"Put it back, or make {before} a link to it.")

    def host_id(self) -> str:
        """Return this host's id, made on first use."""
        return _once(self.root / "host-id", secrets.token_hex(6))

    def is_of_host(self, host: str) -> bool:
        """Say whether this is the state directory of a host; make no id."""
        return (self.root / "host-id").exists() and self.host_id() == host

    def api_token(self) -> str:
        """Return the HTTP API's token, made on first use: a file that only this user reads."""
        return _once(self.api_token_file, secrets.token_urlsafe(_TOKEN_BYTES))

    def page_key(self) -> str:
        """Return the key that opens the page, made on first use: a file that only this user reads."""
        return _once(self.page_key_file, secrets.token_hex(_TOKEN_BYTES))


def _close_to_others(path: Path) -> None:
    with suppress(FileNotFoundError):
        status = path.lstat()
        if not stat.S_ISLNK(status.st_mode) and status.st_mode & _OTHERS:
            path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)


def _once(path: Path, word: str) -> str:
    """Return the word in a file; without a file, write this word first. Of two processes the first one wins."""
    if not path.exists():
        write_first(path, f"{word}\n".encode("ascii"))
    return path.read_text(encoding="ascii").strip()
