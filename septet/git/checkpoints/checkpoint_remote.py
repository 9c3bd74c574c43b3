"""The remote to which a host pushes its snapshots, so that another host can continue if this host is lost.

Each work order has one ref, `refs/septet/checkpoints/<work order>/<digest of the first Temporal run>`, whose
commits form a chain. Each commit names its host, and only the host that has the work order may add a commit. A
push expects the last commit that this host knows: the remote refuses the push after the work order has moved.
"""

import hashlib
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.errors import GitError, NotFoundError
from septet.git.engine.engine import Git, share_guard
from septet.git.engine.git_words import failure_of
from septet.git.engine.place import Place
from septet.git.engine.remote import Remote

ORIGIN: Final = "origin"
"""The value of `SEPTET_CHECKPOINT_REMOTE` for hidden refs in the work order's own repository."""

_REFS: Final = "septet/checkpoints"
_PUSH_SECONDS: Final = 600.0
_CONFIG: Final = """\
[receive]
\tunpackLimit = 1
"""
# Each push makes one pack, whose bytes are synced to disk: git does not sync loose objects.


class StaleError(GitError):
    """The work order's chain on the checkpoint remote is not where this host left it."""


@dataclass(frozen=True, slots=True)
class CheckpointRef:
    """The ref of one work order's snapshots on the checkpoint remote."""

    remote: Remote
    ref: str
    """The ref's full name."""
    folder: Path | None = None
    """The folder of a bare repository, which Septet creates if it is missing; `None` if `remote` must exist."""

    @property
    def local(self) -> str:
        """The vault's ref for the remote's last commit, as far as this host knows it."""
        return f"refs/kept/{self.ref.removeprefix(f'refs/{_REFS}/')}"

    def tip(self, vault: Git) -> str | None:
        """Return the last commit on the remote; `None` if the remote does not have the ref.

        Raises:
            GitUnavailableError: The remote was not reached.
            GitError: The remote refused.
        """
        if self.folder is not None and not self.folder.exists():
            return None
        return self.remote.refs(vault.git_dir, self.ref).shas.get(self.ref)

    def fetch(self, vault: Git) -> str:
        """Fetch the ref's commits into the vault, and return the last one.

        Raises:
            NotFoundError: The remote has no chain of this work order.
            GitUnavailableError: The remote was not reached.
            GitError: The remote refused.
        """
        if self.tip(vault) is None:
            raise NotFoundError(
                f"{self.remote.url} keeps no checkpoint under {self.ref}.",
                remedy="Start a worker on the state directory that has the work order.",
            )
        copy = self.local.replace("refs/kept/", "refs/seen/", 1)  # not `local`: another host may have written it
        with share_guard(vault.guard):
            self.remote.fetch(vault.git_dir, f"+{self.ref}:{copy}")
        return vault.text("rev-parse", copy)

    def push(self, vault: Git, commit: str, expected_tip: str | None) -> None:
        """Move the remote's ref from `expected_tip` to `commit`, and note `commit` in the vault as the last one.

        Raises:
            StaleError: The remote's ref is at another commit.
            GitUnavailableError: The remote was not reached.
            GitError: The remote refused.
        """
        self._make()
        answer = self.remote.push(vault.git_dir, commit, self.ref, expected_tip or "", _PUSH_SECONDS)
        if answer.rejection:
            message = f"{self.remote.url} rejected {self.ref}: {answer.rejection}"
            raise StaleError(message) if "stale info" in answer.rejection else GitError(message)
        if not answer.is_done:
            raise failure_of("push", self.remote.url, answer.stderr)
        vault.run("update-ref", self.local, commit)

    def _make(self) -> None:
        """Create the bare repository `folder` if it is missing, completely or not at all."""
        if self.folder is None or self.folder.exists():
            return
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = self.folder.with_name(f"{self.folder.name}.{secrets.token_hex(4)}.new")
        Git(unfinished, env=self.remote.env).init("--bare")
        with (unfinished / "config").open("a", encoding="utf-8") as config:
            config.write(_CONFIG)
        try:
            unfinished.rename(self.folder)
        except OSError:
            shutil.rmtree(unfinished)
            if not self.folder.exists():
                raise


def checkpoint_ref_in(folder: Path, place: Place, first_run_id: str) -> CheckpointRef:
    """Return a work order's ref in `folder`, which holds a bare repository for each vault."""
    repository = folder / place.vault.name
    return CheckpointRef(Remote(str(repository), place.env), _ref(place.order_id, first_run_id), repository)


def checkpoint_ref_at(remote: Remote, place: Place, first_run_id: str) -> CheckpointRef:
    """Return a work order's ref in an existing repository."""
    return CheckpointRef(remote, _ref(place.order_id, first_run_id))


def _ref(order_id: str, first_run_id: str) -> str:
    """Return the name of a work order's ref; the digest distinguishes equal ids on different servers."""
    digest = hashlib.sha256(first_run_id.encode()).hexdigest()[:16]
    return f"refs/{_REFS}/{order_id.replace('.', '%2E')}/{digest}"
