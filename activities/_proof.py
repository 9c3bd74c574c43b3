"""What a step's evidence is: the answer is a claim, the proof is what git and the forge say."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Proof:
    """The answer holds."""

    result_text: str
    commit_sha: str | None = None
    warnings: tuple[str, ...] = ()


class UnprovenError(Exception):
    """The answer was read, but what it claims is not so."""

    def __init__(self, *reasons: str) -> None:
        """Say why, in words that the agent can act on."""
        self.reasons = reasons
        super().__init__("; ".join(reasons))


class RefusedError(UnprovenError):
    """The agent said itself that the work failed."""
