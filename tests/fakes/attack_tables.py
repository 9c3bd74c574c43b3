"""The tables of attacks in docs/attacks.md: for each kind, the number of attacks and their protections."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Attack:
    """An attempt and its protection; `attack` and `protection` are words for people."""

    name: str
    attack: str
    program: str
    """Python that runs in the guest."""
    protection: str


def counted(kinds: Mapping[str, Iterable[tuple[str, str]]]) -> str:
    lines = ["| kind of attack | attacks | stopped by |", "| --- | --- | --- |"]
    for kind, attacks in kinds.items():
        protections = [protection for _, protection in attacks]
        lines.append(f"| {kind} | {len(protections)} | {'; '.join(dict.fromkeys(protections))} |")
    return "\n".join(lines) + "\n"
