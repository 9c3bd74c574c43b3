"""A person at a pull request, who reviews, pushes, merges, and checks the agent's work."""

import asyncio
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from fakes.forges.state import ForgeFake, PullState

WITHIN_SECONDS = 150.0
_LOOK_SECONDS = 0.1


class MissedError(Exception):
    """An expected event did not come."""


@dataclass
class Person:
    """One person and one pull request."""

    fake: ForgeFake
    pull: PullState
    order_id: str
    runs: Path
    """The folder of the work order's agent runs."""
    pushes: list[str] = field(default_factory=list)
    """The commits that the person pushed to the branch."""

    @property
    def head(self) -> str:
        """Return the commit of the branch."""
        return self.fake.sha(self.pull)

    def check(self, state: str, log: str = "") -> str:
        """Let a check of the head end, and return the head."""
        head, name = self.head, f"test-{self.order_id}"
        with self.fake.lock:
            self.fake.logs[name] = log
            self.fake.statuses[head] = [(name, state)]
        return head

    def fail(self, line: str, path: str) -> str:
        """Let a check fail until a file has a line."""
        return self.check("failure", f"E: it is missing. Write `{line}` into `{path}`.")

    def push(self, path: str, content: str) -> str:
        """Push a commit to the branch."""
        self.pushes.append(commit_file(self.bare, self.pull.head, path, content))
        with self.fake.lock:
            self.fake.touch(self.pull)
        return self.pushes[-1]

    def change_base(self, path: str, content: str) -> None:
        """Commit a file to the base."""
        commit_file(self.bare, self.pull.base, path, content)

    def merge(self) -> None:
        """Merge, and report it on the forge."""
        git(self.bare, "update-ref", "refs/merged/" + self.order_id, self.head)
        self.fake.end_pull(self.pull.number, "merged")

    def file(self, path: str) -> str:
        """Return a file of the branch; empty without the file."""
        shown = subprocess.run(
            ["git", "show", f"{self.pull.head}:{path}"], cwd=self.bare, capture_output=True, text=True, check=False
        )
        return shown.stdout if shown.returncode == 0 else ""

    def files(self) -> list[str]:
        """Return the files that the branch changes."""
        return git(self.bare, "diff", "--name-only", f"{self.pull.base}...{self.pull.head}").splitlines()

    async def until(self, holds: Callable[[], object], what: str) -> None:
        """Poll until `holds` is true.

        Raises:
            MissedError: The time is over.
        """
        deadline = time.monotonic() + WITHIN_SECONDS
        while not await asyncio.to_thread(holds):
            if time.monotonic() > deadline:
                raise MissedError(f"{self.order_id} on {self.fake.name}: {what}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def until_worked_on(self) -> None:
        """Wait until an agent has begun an answer."""
        await self.until(lambda: any(self.runs.glob("8-rework-*")), "no agent began")

    async def until_pushed(self, head: str) -> None:
        """Wait until the branch has moved from `head`."""
        await self.until(lambda: self.head != head, "the branch never moved")

    async def until_answered(self, event: str) -> None:
        """Wait until an event is answered."""
        await self.until(lambda: self.answers(event), f"{event} was never answered")

    def answers(self, event: str) -> int:
        """Return the number of answers to an event, by the marks in the pull request's comments."""
        with self.fake.lock:
            return sum(note.body.count(f"septet answers: {event} ") for note in self.pull.notes)

    def answered_twice(self) -> list[str]:
        """Return the events and comments that were answered more than once, by marks and replies."""
        marks = [
            word
            for note in self.pull.notes
            for word in note.body.split()
            if word.startswith(("checks:", "review:", "thread:", "conflict:"))
        ]
        twice = [mark for mark in set(marks) if marks.count(mark) > 1]
        for thread in self.pull.threads:
            authors = [note.author for note in thread.notes]
            if any(pair == ("septet", "septet") for pair in pairwise(authors)):
                twice.append(f"thread {thread.id}")
        return twice

    def lost_pushes(self) -> list[str]:
        """Return the person's commits that the branch no longer contains."""
        return [sha for sha in self.pushes if not is_ancestor(self.bare, sha, self.head)]

    def forced_pushes(self) -> list[str]:
        """Return the moves of the branch that removed a commit."""
        log = git(self.bare, "reflog", "show", "--format=%H", f"refs/heads/{self.pull.head}").splitlines()[::-1]
        pairs = pairwise(log)
        return [f"{old[:8]}..{new[:8]}" for old, new in pairs if not is_ancestor(self.bare, old, new)]

    @property
    def bare(self) -> Path:
        """Return the repository on the forge."""
        return bare_of(self.fake)


def bare_of(fake: ForgeFake) -> Path:
    """Return a forge's bare repository."""
    return (fake.repositories or Path()) / f"{fake.project}.git"


def commit_file(bare: Path, branch: str, path: str, content: str) -> str:
    """Commit a file to a branch of a bare repository, also beside other writers, and return the commit."""
    while True:
        old = git(bare, "rev-parse", f"refs/heads/{branch}")
        index = bare / f"index-{os.getpid()}-{branch.replace('/', '-')}"
        blob = git(bare, "hash-object", "-w", "--stdin", stdin=content)
        env = {"GIT_INDEX_FILE": str(index)}
        git(bare, "read-tree", old, env=env)
        git(bare, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", env=env)
        tree = git(bare, "write-tree", env=env)
        index.unlink()
        new = git(bare, "commit-tree", tree, "-p", old, "-m", f"A person changes {path}")
        moved = subprocess.run(
            ["git", "update-ref", f"refs/heads/{branch}", new, old], cwd=bare, capture_output=True, check=False
        )
        if moved.returncode == 0:
            return new


def is_ancestor(bare: Path, older: str, sha: str) -> bool:
    """Return whether a commit descends from another."""
    argv = ["git", "merge-base", "--is-ancestor", older, sha]
    return subprocess.run(argv, cwd=bare, check=False, capture_output=True).returncode == 0


def git(bare: Path, *args: str, stdin: str = "", env: dict[str, str] | None = None) -> str:
    """Run git in a bare repository, and return its output."""
    who = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@septet.invalid"}
    who |= {"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@septet.invalid"}
    return subprocess.run(
        ["git", *args],
        cwd=bare,
        env={**os.environ, **who, **(env or {})},
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
