"""What a step's evidence is: the answer is a claim, the proof is what git and the forge say."""

from dataclasses import dataclass

from septet.contracts.solution import Outline
from septet.errors import EvidenceError
from septet.git.worktree_status import WorktreeStatus


@dataclass(frozen=True, slots=True)
class Proof:
    """The answer holds."""

    result_text: str
    commit_sha: str | None = None
    plan_sha256: str | None = None
    warnings: tuple[str, ...] = ()
    outline: Outline | None = None
    """What is remembered of a solution, where the step has one."""
    standing: WorktreeStatus | None = None
    """How the worktree stands against the HEAD that the proof has made, where it made one."""


class RefusedError(EvidenceError):
    """The agent said itself that the work failed."""
