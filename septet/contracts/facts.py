"""Facts about agent runs, each with a limited size because workflows carry them."""

from collections.abc import Iterable
from typing import Final, Literal, Self

from septet.contracts.wire import Wire

Operation = Literal["create", "modify", "delete", "rename"]
FindingKind = Literal["key", "path", "outgoing"]


class Usage(Wire):
    """The tokens and US dollars that a run used."""

    input_tokens: int = 0
    """The input tokens that were neither read from a cache nor written to a cache."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """The output tokens spent on reasoning, if the CLI reports them."""
    cost_usd: float | None = None
    """US dollars, if the CLI reports them; otherwise `None`."""
    cost_is_partial: bool = False
    """Whether a part of the use has no known cost, such as a run that was killed before its CLI reported the
    cost."""
    estimated: bool = False
    """Whether the tokens were read from text and not from the CLI's usage record."""

    @property
    def tokens(self) -> int:
        """The sum of input, output, cache-read and cache-write tokens."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens

    def plus(self, other: Self) -> Self:
        """Return the sum of both; its cost is `None` only if neither has a cost."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        lacks = any(each.cost_usd is None and each.tokens for each in (self, other))
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
        return self.model_copy(
            update={
                **{name: getattr(self, name) + getattr(other, name) for name in names},
                "cost_usd": sum(costs) if costs else None,
                "cost_is_partial": self.cost_is_partial or other.cost_is_partial or bool(costs and lacks),
                "estimated": self.estimated or other.estimated,
            }
        )


class KeyFinding(Wire):
    """A finding that waits for a person's decision: a possible key, a protected path, or a reader's suspicion."""

    kind: FindingKind = "key"
    id: str = ""
    """The id with which a person allows the finding; empty for a key of the worker, which is never allowed."""
    path: str
    """The file's path in the worktree, at most 200 characters; or the name of a text, such as `(body)`."""
    line: int = 0
    """The line of the finding, from 1; 0 for a protected path, and if the file's name itself looks like a key."""
    rule: str
    """The kind of the key, such as `github-pat`, but never the key itself; or the change of a protected path; or
    the suspicion."""
    commit: str = ""
    """The first characters of the commit that adds the finding; empty before a commit."""

    @property
    def where(self) -> str:
        """The file, the line and the rule in words."""
        if self.kind == "path" or (self.kind == "outgoing" and not self.line):
            return f"{self.path} ({self.rule})"
        commit = f" of commit {self.commit}" if self.commit else ""
        line = f" line {self.line}" if self.line else ", the name itself,"
        return f"{self.path}{line}{commit} ({self.rule})"


def tell_findings(findings: Iterable[KeyFinding]) -> str:
    """Return a sentence, without its full stop, that lists findings with their places."""
    places: dict[FindingKind, list[str]] = {"key": [], "path": [], "outgoing": []}
    for finding in findings:
        places[finding.kind].append(finding.where)
    keys, paths, suspected = (", ".join(each) for each in places.values())
    parts = (
        f"something that looks like a key is in {keys}" if keys else "",
        f"the work changes what CI, forges or agents act on unreviewed: {paths}" if paths else "",
        f"the reader of what is about to be pushed reports {suspected}" if suspected else "",
    )
    told = ", and ".join(filter(None, parts))
    return told[:1].upper() + told[1:]


class FileChange(Wire):
    """One file that differs from the base commit."""

    path: str
    """The path relative to the worktree's root, with `/`; bytes that are not UTF-8 are shown as `\\xNN`."""
    operation: Operation


LEFT_BESIDE_PLAN: Final = "left besides the plan, and not passed on"
"""How the reason begins for a rescue of files that the planner left besides the plan."""


class Rescue(Wire):
    """A snapshot of work that a person may want back."""

    snapshot: str
    """The snapshot's name, for `septet rescue restore`."""
    reason: str
    """The reason for the snapshot, in a few words."""
    step: str | None = None
    """The step that was running when the snapshot was taken."""
    patch: str | None = None
    """The path of `rescue.patch` on the host that took the snapshot; `None` if the tree equals the base."""
    host: str | None = None
    """The id of the host whose vault holds the snapshot."""
    taken_at: str = ""
    """The time of the snapshot: ISO 8601, UTC."""

    @property
    def is_left_by_planner(self) -> bool:
        """Whether the rescue holds files that the planner left besides the plan."""
        return self.reason.startswith(LEFT_BESIDE_PLAN)

    @property
    def telling(self) -> str:
        """The reason, with the command that restores the snapshot."""
        return f"{self.reason} (`septet rescue restore {self.snapshot} --to DIR`)"
