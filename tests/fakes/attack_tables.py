"""The tables of attacks in docs/attacks.md: a row for each protection, with the number of attacks that it stops."""

from collections import defaultdict
from collections.abc import Iterable


def counted(attacks: Iterable[tuple[str, str]]) -> str:
    """Return the table of these attacks and protections; the example is the first attack that reads by itself."""
    stopped: defaultdict[str, list[str]] = defaultdict(list)
    for attack, protection in attacks:
        stopped[protection].append(attack)
    lines = ["| protection | attacks | such as |", "| --- | --- | --- |"]
    for protection, tried in stopped.items():
        example = next((each for each in tried if not each.startswith("…")), tried[0].removeprefix("… "))
        lines.append(f"| {protection} | {len(tried)} | {example} |")
    return "\n".join(lines) + "\n"
