"""A remote repository, which git reaches by its URL with the worker's own credentials."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from septet.errors import GitError, GitUnavailableError
from septet.git.engine.engine import Git
from septet.git.engine.git_words import UNREACHED_REMEDY, failure_of, printable, shallow
from septet.system.processes import Completed

TRANSFER_SECONDS: Final = 3600.0
"""The most seconds of a fetch or a push; a silent connection ends much earlier."""
_LISTING_SECONDS: Final = 120.0
_SLOWEST_BYTES_PER_SECOND: Final = 1000
_SILENT_SECONDS: Final = 60
"""How many seconds an HTTP transfer may be slower than `_SLOWEST_BYTES_PER_SECOND`.

A server may count objects for long before it answers.
"""
_SILENT_LISTING_SECONDS: Final = 20
"""The same limit in seconds for a list of refs."""
_SHALLOW: Final = b"shallow roots are not allowed to be updated"
"""git's warning that it does not fetch a ref; git still exits with 0."""
_REJECTED: Final = 1
"""git's exit code if the remote rejected a ref; other failures may have it too."""
_LED_ON: Final = re.compile(rb"returned error: 30[12378]\b")
_LEADS_TO: Final = re.compile(rb"^.*<= Recv header: location: (\S+)/info/refs\b", re.MULTILINE | re.IGNORECASE)
"""The pattern of the line in git's trace with the address of a redirect."""
_NEW_ADDRESSES: Final[dict[str, str]] = {}
"""The new addresses of repositories by old address, from redirects; an entry is deleted when git fails there."""
_SSH_OPTIONS: Final = "-oBatchMode=yes -oConnectTimeout=15 -oServerAliveInterval=15 -oServerAliveCountMax=4"


@dataclass(frozen=True, slots=True)
class RemoteRefs:
    """The refs that a remote reports."""

    head: str | None
    """The full name of the ref to which HEAD points; `None` if HEAD is detached or the ref is missing."""
    shas: Mapping[str, str]
    """The commits by full ref name."""


@dataclass(frozen=True, slots=True)
class PushAnswer:
    """A remote's answer to a push of one ref."""

    is_done: bool
    rejection: str
    """The remote's line about a rejected ref; empty for an accepted ref or without a verdict."""
    stderr: bytes


@dataclass(frozen=True, slots=True)
class Remote:
    """A remote repository, with the credentials and the environment for it."""

    url: str
    env: Mapping[str, str]
    token: str | None = field(default=None, repr=False)
    """The worker's key for an https address; ssh uses the user's own keys."""

    def refs(self, git_dir: Path, *patterns: str) -> RemoteRefs:
        """Return the refs that match any of `patterns`, or all refs without patterns, in one request.

        Raises:
            GitUnavailableError: The remote was not reached.
            NotFoundError: The remote has no such repository.
            GitError: The remote refused.
        """
        completed = self.run(
            git_dir,
            *("ls-remote", "--symref", "--", self.url, *patterns),
            timeout_seconds=_LISTING_SECONDS,
            silent_seconds=_SILENT_LISTING_SECONDS,
        )
        head, shas = None, {}
        for line in completed.stdout.decode(errors="surrogateescape").splitlines():
            value, _, name = line.partition("\t")
            if value.startswith("ref: "):
                head = value.removeprefix("ref: ") if name == "HEAD" else head
            else:
                shas[name] = value
        return RemoteRefs(head, MappingProxyType(shas))

    def fetch(self, git_dir: Path, *refspecs: str, prune: bool = False) -> None:
        """Fetch refs into a repository, and change nothing else.

        Args:
            refspecs: The refs to fetch, with their local names; a tag is fetched only if it is named here.
            prune: Whether to delete local refs that the remote no longer has.

        Raises:
            GitUnavailableError: The remote was not reached.
            NotFoundError: The remote has no such repository.
            InvalidInputError: The remote is a shallow clone.
            GitError: The remote refused.
        """
        completed = self.run(
            git_dir,
            *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
            *(["--prune"] if prune else []),
            *("--", self.url, *refspecs),
        )
        if _SHALLOW in completed.stderr:
            raise shallow(self.url)

    def push(
        self, git_dir: Path, commit: str, ref: str, instead_of: str, timeout_seconds: float = TRANSFER_SECONDS
    ) -> PushAnswer:
        """Push a commit to a ref of the remote if the ref is at the expected commit, and return the answer.

        Args:
            ref: The ref's full name.
            instead_of: The commit at which the ref must be; empty if the ref must not exist.

        Raises:
            GitUnavailableError: The remote was not reached.
            NotFoundError: The remote has no such repository.
            GitError: The remote refused the connection; if it rejected only the ref, the answer has the reason.
        """
        completed = self.run(
            git_dir,
            *("push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no"),
            *(f"--force-with-lease={ref}:{instead_of}", "--", self.url, f"{commit}:{ref}"),
            ok=(0, _REJECTED),
            timeout_seconds=timeout_seconds,
        )
        rejected = next((line for line in completed.stdout.splitlines() if line.startswith(b"!")), b"")
        return PushAnswer(completed.exit_code == 0, printable(rejected), completed.stderr)

    def run(
        self,
        git_dir: Path,
        *args: str,
        ok: tuple[int, ...] = (0,),
        timeout_seconds: float = TRANSFER_SECONDS,
        silent_seconds: int = _SILENT_SECONDS,
    ) -> Completed:
        """Run a git command that connects to the remote, in a repository whose config no agent can write.

        Args:
            ok: The exit codes that do not count as errors.
            timeout_seconds: The seconds after which git and all its child processes are killed.
            silent_seconds: The seconds after which git closes an HTTP connection that is almost silent.

        Raises:
            GitUnavailableError: The remote was not reached, or did not answer in time.
            NotFoundError: The remote has no such repository.
            GitError: The remote refused.
        """
        git = self._git(git_dir)
        url = _NEW_ADDRESSES.get(self.url, self.url)
        for _ in range(5):  # redirects at most
            words = (url if each == self.url else each for each in args)
            completed = git.try_run(
                *words,
                timeout_seconds=timeout_seconds,
                http__lowSpeedLimit=str(_SLOWEST_BYTES_PER_SECOND),
                http__lowSpeedTime=str(silent_seconds),
                http__followRedirects="false" if git.secret_config else "initial",
            )
            if not (git.secret_config and _LED_ON.search(completed.stderr)):
                break
            url = self._led_on(git, url)
        if completed.exit_code != 0:
            _NEW_ADDRESSES.pop(self.url, None)
        elif url != self.url:
            _NEW_ADDRESSES[self.url] = url
        if completed.timed_out:
            message = f"{self.url} did not answer within {timeout_seconds:.0f} s (git {args[0]})."
            raise GitUnavailableError(message, remedy=f"{UNREACHED_REMEDY} Septet tries again.")
        if completed.exit_code not in ok:
            raise failure_of(args[0], self.url, completed.stderr)
        return completed

    def _led_on(self, git: Git, url: str) -> str:
        """Return the address to which the remote's server redirects; raise if the address is on another server.

        git itself would send the key to the other server.
        """
        tracing = git.with_env(GIT_TRACE_CURL="1", GIT_TRACE_CURL_NO_DATA="1")
        told = tracing.try_run(
            *("ls-remote", "--", url), timeout_seconds=_LISTING_SECONDS, http__followRedirects="false"
        )
        found = _LEADS_TO.findall(told.stderr)
        new = found[-1].decode(errors="replace") if found else ""
        if urlsplit(new)[:2] != urlsplit(self.url)[:2]:
            place = printable("{0.scheme}://{0.netloc}".format(urlsplit(new)).encode()) if new else "elsewhere"
            message = f"{self.url} leads to {place}, which gets no key of the worker's."
            raise GitError(message, remedy="Name the repository by its new address.")
        return new

    def _git(self, git_dir: Path) -> Git:
        git = Git(git_dir, env={**self.env, "GIT_ASKPASS": "", "GCM_INTERACTIVE": "never"})
        parts = urlsplit(self.url) if "://" in self.url else None
        if parts is None or parts.scheme == "ssh":
            return git if self.url.startswith("/") else git.with_env(GIT_SSH_COMMAND=self._ssh(git))
        return replace(git, secret_config=self._credentials(parts.scheme, parts.netloc))

    def _credentials(self, scheme: str, netloc: str) -> dict[str, str]:
        """Return git settings with the token for one URL; no other server gets the token.

        git reads these settings from a file in memory where possible, because every user can read argv, and child
        processes inherit the environment. git's credential helpers are off, because they store a key.
        """
        if self.token is None:
            return {}
        basic = b64encode(f"x-access-token:{self.token}".encode()).decode()
        return {f"http.{scheme}://{netloc}/.extraHeader": f"Authorization: Basic {basic}", "credential.helper": ""}

    def _ssh(self, git: Git) -> str:
        """Return the user's ssh command with options that prevent prompts.

        A `GIT_SSH_COMMAND` in the environment stays as it is, because it may not be OpenSSH.
        """
        if own := self.env.get("GIT_SSH_COMMAND"):
            return own
        configured = git.try_run("config", "--get", "core.sshCommand").stdout.decode().strip()
        return f"{configured or 'ssh'} {_SSH_OPTIONS}"
