"""An agent's claim and its proof: the answer is a claim, the proof is what git and the forge say."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from activities.host.fence import Fence
from septet.agents.sandbox.guest_run import GuestRunner
from septet.contracts.facts import KeyFinding
from septet.contracts.names import Step
from septet.contracts.solution import Outline
from septet.contracts.steps import StepCall
from septet.errors import EvidenceError
from septet.git.engine.place import Place
from septet.git.evidence.evidence import Evidence
from septet.repository_settings import RepositorySettings

A = TypeVar("A")
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Claim(Generic[A]):
    """What an agent says it has done, beside what git says."""

    call: StepCall
    place: Place
    began_at: str
    """The commit that the work order began from: what differs from it is its work."""
    answer: A
    evidence: Evidence
    repository_settings: RepositorySettings
    fence: Fence
    """To be checked right before each effect."""
    guests: Callable[[], GuestRunner]
    """Gives what runs the repository's own programs."""


AnyClaim = Claim[Any]


@dataclass(frozen=True, slots=True)
class Proof:
    """The answer holds."""

    result_text: str
    commit_sha: str | None = None
    checks_passed: int = 0
    plan_sha256: str | None = None
    plan_bytes: int | None = None
    warnings: tuple[str, ...] = ()
    outline: Outline | None = None
    """What is remembered of a solution, where the step has one."""
    findings: tuple[KeyFinding, ...] = ()
    """What a reader suspects."""


class RefusedError(EvidenceError):
    """The agent said itself that the work failed."""


class EarlierStepError(EvidenceError):
    """What an earlier step has made does not hold any more: the message says to its agent what is to be done."""

    def __init__(self, message: str, step: Step) -> None:
        """Say what is to be done in which step."""
        self.step = step
        super().__init__(message)


class UnreadError(EvidenceError):
    """What is about to leave waits for a reader, and nothing was pushed."""

    def __init__(self, digest: str) -> None:
        """Name what is to be read."""
        self.digest = digest
        super().__init__("What is about to be pushed waits for its reader.")


class UnclearAnswerError(EvidenceError):
    """The answer can mean two things: its session is asked for it once more, and the work is not done again."""


def prove_bare(value: str, bare: tuple[str, ...], prove: Callable[[str], P]) -> P:
    """Return what proves a value as it was given, or else as it is without its dress.

    Args:
        value: The agent's value.
        bare: What the value may be without its dress.
        prove: Proves one of them; raises `EvidenceError`.

    Raises:
        UnclearAnswerError: The parts of a link do not mean the same.
        EvidenceError: Nothing holds.
    """
    try:
        return prove(value)
    except EvidenceError as error:
        refusal = error
    proofs, refusals = list[P](), list[EvidenceError]()
    for form in bare:
        try:
            proofs.append(prove(form))
        except EvidenceError as error:
            refusals.append(error)
    if not proofs:
        raise [refusal, *refusals][-1]
    if refusals or any(proof != proofs[0] for proof in proofs):
        raise UnclearAnswerError(f"{value[:200]!r} is a link whose two parts differ: give the bare value alone.")
    return proofs[0]
