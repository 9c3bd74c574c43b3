"""The tables of attacks in docs/attacks.md: for each kind, the number of attacks and their protections."""

from collections.abc import Iterable, Mapping


def counted(kinds: Mapping[str, Iterable[tuple[str, str]]]) -> str:
    lines = ["| kind of attack | attacks | stopped by |", "| --- | --- | --- |"]
    for kind, attacks in kinds.items():
        protections = [protection for _, protection in attacks]
        lines.append(f"| {kind} | {len(protections)} | {'; '.join(dict.fromkeys(protections))} |")
    return "\n".join(lines) + "\n"
