"""The tables of attacks in docs/attacks.md: a row for each kind, with the number of attacks and what stops them."""

from collections.abc import Iterable, Mapping


def counted(kinds: Mapping[str, Iterable[tuple[str, str]]]) -> str:
    """Return the table of these kinds: each has attacks with their protections."""
    lines = ["| kind of attack | attacks | stopped by |", "| --- | --- | --- |"]
    for kind, attacks in kinds.items():
        protections = [protection for _, protection in attacks]
        lines.append(f"| {kind} | {len(protections)} | {'; '.join(dict.fromkeys(protections))} |")
    return "\n".join(lines) + "\n"
