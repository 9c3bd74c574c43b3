"""What a step's evidence is: the answer is a claim, the proof is what git and the forge say."""

from dataclasses import dataclass

from septet.errors import EvidenceError


@dataclass(frozen=True, slots=True)
class Proof:
    """The answer holds."""

    result_text: str
    commit_sha: str | None = None
    warnings: tuple[str, ...] = ()


class RefusedError(EvidenceError):
    """The agent said itself that the work failed."""
