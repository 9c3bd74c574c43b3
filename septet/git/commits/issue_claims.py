"""The claims of issues: refs `refs/septet/issues/<number>` in the issue's repository.

Git creates a ref only once, so only one of several workflows gets an issue. The ref remains after Temporal has
deleted the work order. Only accounts that may push can create it.
"""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.errors import GitError
from septet.git.engine.engine import Git
from septet.git.engine.git_words import failure_of
from septet.git.engine.remote import Remote

_PREFIX: Final = "refs/septet/issues/"
_NAME: Final = re.compile(rf"{_PREFIX}([1-9][0-9]{{0,8}})")


@dataclass(frozen=True, slots=True)
class IssueClaims:
    """The claims of the issues of one repository."""

    remote: Remote
    scratch: Path
    """A folder for temporary repositories."""

    def numbers(self) -> frozenset[int]:
        """Return the numbers of all claimed issues.

        Raises:
            GitUnavailableError: The repository was not reached.
            NotFoundError: There is no such repository.
            GitError: The remote refused.
        """
        with self._repository() as git:
            shas = self.remote.refs(git.git_dir, f"{_PREFIX}*").shas
        return frozenset(int(match[1]) for name in shas if (match := _NAME.fullmatch(name)))

    def claimants(self, number: int | None = None) -> frozenset[str]:
        """Return the ids of the workflows that claimed an issue, or any issue if `number` is `None`.

        Raises:
            GitUnavailableError: The repository was not reached.
            NotFoundError: There is no such repository.
            GitError: The remote refused.
        """
        with self._repository() as git:
            found = self._read_claimants(git, "*" if number is None else str(number))
            return frozenset(claimant for claimant in found.values() if isinstance(claimant, str))

    def left_by(self, claimants: AbstractSet[str]) -> frozenset[int]:
        """Return the numbers of the issues that the workflows `claimants` have claimed.

        Raises:
            GitUnavailableError: The repository was not reached.
            NotFoundError: There is no such repository.
            GitError: The remote refused.
        """
        if not claimants:
            return frozenset()
        with self._repository() as git:
            found = self._read_claimants(git, "*")
            return frozenset(number for number, claimant in found.items() if claimant in claimants)

    def claim(
        self, number: int, order_id: str, claimant: str, claimed_at: str, left_by: AbstractSet[str] = frozenset()
    ) -> bool:
        """Claim an issue for a workflow; return whether the workflow has it. A repeated call returns the same.

        Args:
            claimed_at: The time of the claim, which is the date of the claim's commit.
            left_by: Workflows that ended without completing: their claims may be replaced.

        Raises:
            GitUnavailableError: The repository was not reached.
            NotFoundError: There is no such repository.
            GitError: The remote refused.
        """
        with self._repository() as git:
            commit = _commit(git, {"order": order_id, "claimant": claimant}, claimed_at)
            ref = f"{_PREFIX}{number}"
            there = self.remote.refs(git.git_dir, ref).shas.get(ref)
            if there is None or there == commit:
                return there == commit or self._push(git, commit, ref)
            before = self._read_claimants(git, str(number)).get(number)
            return before == claimant or (before in left_by and self._push(git, commit, ref, there))

    def _read_claimants(self, git: Git, numbers: str) -> dict[int, object]:
        """Return the claiming workflow of each issue whose number matches `numbers`, a number or a pattern."""
        refs = f"{_PREFIX}{numbers}"
        names = [name for name in self.remote.refs(git.git_dir, refs).shas if _NAME.fullmatch(name)]
        if names:
            self.remote.fetch(git.git_dir, f"+{refs}:{refs}")
        return {
            int(name.removeprefix(_PREFIX)): _facts(git.text("log", "-1", "--format=%B", name)).get("claimant")
            for name in names
        }

    def _push(self, git: Git, commit: str, ref: str, instead_of: str = "") -> bool:
        """Create `ref` at `commit`, or move `ref` from `instead_of`; return whether `ref` is at `commit` now."""
        answer = self.remote.push(git.git_dir, commit, ref, instead_of, timeout_seconds=120.0)
        if answer.is_done:
            return True
        there = self.remote.refs(git.git_dir, ref).shas.get(ref)
        if there is not None and there != instead_of:
            return there == commit  # another claimant was faster, or this push arrived and its answer was lost
        if answer.rejection:
            message = f"{self.remote.url} rejected {ref}: {answer.rejection}"
            raise GitError(message, remedy="Give the worker's key the right to push to this repository.")
        raise failure_of("push", self.remote.url, answer.stderr)

    @contextmanager
    def _repository(self) -> Iterator[Git]:
        self.scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.scratch, prefix="claim-") as folder:
            git = Git(Path(folder) / "claims.git", env=self.remote.env)
            git.init("--bare")
            yield git


def _facts(content: str) -> Mapping[str, object]:
    """Return what a claim's commit records; empty for any other commit."""
    try:
        facts = json.loads(content)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _commit(git: Git, facts: Mapping[str, str], when: str) -> str:
    """Make a commit that records a claim, and return its id; equal facts give an equal id."""
    who = {"NAME": "Septet", "EMAIL": "septet@localhost", "DATE": when}
    own = git.with_env(
        **{f"GIT_{role}_{name}": text for role in ("AUTHOR", "COMMITTER") for name, text in who.items()}
    )
    tree = own.run("mktree", stdin=b"").decode("ascii").strip()
    return own.text("commit-tree", tree, "-m", json.dumps(facts, sort_keys=True))
