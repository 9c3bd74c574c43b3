"""An agent's claim, which is its answer, and the proof of the claim by git and the forge."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from activities.host.running_attempts import Fence
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
    """An agent's answer about its work, with the evidence to check it."""

    call: StepCall
    place: Place
    began_at: str
    """The commit on which the work order began: every difference from this commit is its work."""
    answer: A
    evidence: Evidence
    repository_settings: RepositorySettings
    fence: Fence
    guests: Callable[[], GuestRunner]


AnyClaim = Claim[Any]


@dataclass(frozen=True, slots=True)
class Proof:
    """The facts of an answer that git and the forge confirm."""

    result_text: str
    commit_sha: str | None = None
    checks_passed: int = 0
    plan_sha256: str | None = None
    plan_bytes: int | None = None
    warnings: tuple[str, ...] = ()
    outline: Outline | None = None
    """The outline of the step's solution; `None` if the step has no solution."""
    findings: tuple[KeyFinding, ...] = ()


class RefusedError(EvidenceError):
    """The agent reports that the work failed."""


class EarlierStepError(EvidenceError):
    """The result of an earlier step no longer holds; the message is for the agent of that earlier step."""

    def __init__(self, message: str, step: Step) -> None:
        self.step = step
        super().__init__(message)


class UnreadError(EvidenceError):
    """The outgoing content waits for a reader, and nothing was pushed."""

    def __init__(self, digest: str) -> None:
        self.digest = digest
        super().__init__("What is about to be pushed waits for its reader.")


class UnclearAnswerError(EvidenceError):
    """The answer can mean two things: the work stays, and the agent's session is requested to answer again."""


def prove_bare(value: str, bare: tuple[str, ...], prove: Callable[[str], P]) -> P:
    """Return the proof of a value as the agent wrote it, or else of the value without its markup.

    Args:
        bare: What the value may be without its markup: for a Markdown link, both the link's text and its target.

    Raises:
        UnclearAnswerError: The forms have different proofs, or only some have a proof.
        EvidenceError: No form has a proof.
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
