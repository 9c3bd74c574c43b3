"""The addresses of repositories without credentials, and the allowed names of branches.

Names that git, forges or people could misread are refused.
"""

import re
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints

from septet.contracts.names import IssueClass

DEFAULT_PREFIX: Final = "septet/"
_LONGEST: Final = 200
_LONGEST_SLUG: Final = 50
_PLAIN: Final = re.compile(r"[A-Za-z0-9._/-]+")
"""The characters that nothing and nobody misreads in a branch's name."""
_REFUSED: Final = re.compile(r"^/|/$|//|(?:^|/)\.|\.\.|\.$|\.lock(?:/|$)|@\{|[\x00-\x20\x7f~^:?*\[\\]")
_COMMIT: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})", re.IGNORECASE)
_PSEUDO_REF: Final = re.compile(r"[A-Z_]+|(?:[a-z]+_)*head|auto_merge|stash|@")
"""The names of git's own files with commits, such as `HEAD`, in the spellings that a case-insensitive file system
takes for the same file."""
_FOLDERS: Final = frozenset((
    "refs", "heads", "tags", "remotes", "origin", "notes", "stash", "bisect", "replace", "original", "worktree",
    "rewritten", "prefetch", "pull", "merge-requests",
))  # fmt: skip
"""The first parts of names that git resolves before branches."""
_OWN: Final = re.compile(r"septet/(?:forge|issues|checkpoints)(?:/|$)", re.IGNORECASE)
"""The pattern of Septet's refs under `refs/` on an origin, which git resolves before branches."""
_WORD: Final = re.compile(r"[a-z0-9]+")
_KINDS: Final = {IssueClass.BUG: "bug", IssueClass.FEATURE: "feat", IssueClass.CHORE: "chore"}


def is_branch_name(name: str) -> bool:
    """Return whether git accepts `name` for a branch, by the rules of git-check-ref-format(1)."""
    return bool(name) and _REFUSED.search(name) is None


def form_refusal(name: str) -> str | None:
    """Return why a name has no valid form for a branch, in words that help an agent; `None` if it is valid."""
    if not name or name.startswith(("-", "refs/", "remotes/", "heads/", "origin/")):
        return f"{name!r} is not a name for a branch"
    if len(name) > _LONGEST:
        return f"{name[:40]}… is longer than {_LONGEST} characters"
    if not is_branch_name(name):
        return f"{name!r} is not a branch name that git accepts"
    if not _PLAIN.fullmatch(name):
        return f"{name!r} has characters other than English letters, digits and . _ - /"
    return None


def name_refusal(name: str) -> str | None:
    """Return why a name is forbidden for the branches of work orders; `None` if it is allowed."""
    if refusal := form_refusal(name):
        return refusal
    if _OWN.match(name):
        return f"{name} would be read as a ref of Septet's own: choose another name"
    if _COMMIT.fullmatch(name) or _PSEUDO_REF.fullmatch(name) or name.partition("/")[0].lower() in _FOLDERS:
        return f"git would read {name} as something else than a branch: choose another name"
    return None


def _as_prefix(prefix: str) -> str:
    if prefix and (refusal := name_refusal(f"{prefix}x")):
        raise ValueError(f"cannot begin a branch's name: {refusal}")
    return prefix


BranchPrefix = Annotated[str, Field(max_length=50), AfterValidator(_as_prefix)]
"""The prefix of the branches of work orders, such as `septet/`; empty: the agent chooses the whole name."""


@dataclass(frozen=True, slots=True)
class FirstPart:
    """The part of a branch's name that Septet puts first, such as `septet/bug-7-`."""

    prefix: str
    issue_class: IssueClass | None
    number: str
    """The issue's number; empty for an issue without a number: the work order's id then replaces the number."""
    order_id: str

    def names_for(self, words: str) -> tuple[str, ...]:
        """Return names for a branch; the caller takes the first that is free on the origin.

        The second name ends with the work order's id, because another work order may have the first. The last
        names have no slash, because the origin may have a branch named like the part before the slash.
        """
        order_id = self.order_id if is_branch_name(f"x-{self.order_id}") else "-".join(_words(self.order_id))
        kind = _KINDS[self.issue_class] if self.issue_class else "work"
        stem = "-".join(filter(None, (kind, self.number or order_id, self._slug(words))))
        stems = (stem, f"{stem}-{order_id}") if self.number else (stem,)
        firsts = (self.prefix, self.prefix.replace("/", "-"))
        return tuple(dict.fromkeys(f"{first}{each}" for first in firsts for each in stems))

    def _slug(self, text: str) -> str:
        """Return the agent's words joined by hyphens, without beginnings that repeat the name's first part."""
        words = _words(text)
        known = (_words(self.prefix), *([kind] for kind in ("feature", *_KINDS.values())), ["issue"])
        for part in (*known, _words(self.number), _words(self.order_id)):
            if part and words[: len(part)] == part:
                words = words[len(part) :]
        lengths = (len("-".join(words[: count + 1])) for count in range(len(words)))
        fitting = len(list(takewhile(lambda length: length <= _LONGEST_SLUG, lengths)))
        return "-".join(words[:fitting] or words[:1])[:_LONGEST_SLUG]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


_ACCOUNT: Final = re.compile(
    r"^(?P<scheme>\s*[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^/?#:]*)(?P<password>:[^/?#]*)?@"
)
_ACCOUNT_OF_SCP: Final = re.compile(r"^(?P<user>\s*[A-Za-z0-9_][A-Za-z0-9._-]*):[^/]*@(?=[^@/:]+:)")


def without_credentials(address: str) -> str:
    """Return an address without password and token. An ssh address keeps its user; a path on disk is unchanged.

    An `http` or `https` address also loses its query, its fragment, and its user, which may be a token.
    """
    if "://" not in address:
        return _ACCOUNT_OF_SCP.sub(r"\g<user>@", address, count=1)
    is_ssh = address.lower().lstrip().startswith(("ssh://", "git+ssh://"))
    kept = r"\g<scheme>\g<user>@" if is_ssh else r"\g<scheme>"
    shown = _ACCOUNT.sub(kept, address, count=1)
    return shown if shown.lower().startswith("file:") else re.split(r"[?#]", shown, maxsplit=1)[0]


Repository = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2048, pattern=r"^[^\x00-\x1f]+$"),
    AfterValidator(without_credentials),
]
"""A repository's address without credentials, because some search attributes and rows are not encrypted."""
