"""The address of a repository without credentials, and the names of its branches.

Git, a forge or a person reads some names as something else.
"""

import re
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints

from septet.contracts.names import IssueClass

DEFAULT_PREFIX: Final = "septet/"
_LONGEST: Final = 200
_LONGEST_PREFIX: Final = 50
_LONGEST_SLUG: Final = 50
_PLAIN: Final = re.compile(r"[A-Za-z0-9._/-]+")
"""What no shell, script or web page takes for anything else, and nobody for another name."""
_REFUSED: Final = re.compile(r"^/|/$|//|(?:^|/)\.|\.\.|\.$|\.lock(?:/|$)|@\{|[\x00-\x20\x7f~^:?*\[\\]")
_COMMIT: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})", re.IGNORECASE)
_PSEUDO_REF: Final = re.compile(r"[A-Z_]+|(?:[a-z]+_)*head|auto_merge|stash|@")
"""The files beside `refs` in which git keeps commits, as a file system without case has them too, and `@`."""
_FOLDERS: Final = frozenset((
    "refs", "heads", "tags", "remotes", "origin", "notes", "stash", "bisect", "replace", "original", "worktree",
    "rewritten", "prefetch", "pull", "merge-requests",
))  # fmt: skip
"""The first folders of names that git looks for before it looks for a branch."""
_OWN: Final = re.compile(r"septet/(?:forge|issues|checkpoints)(?:/|$)", re.IGNORECASE)
"""What stands under `refs/` on an origin for the engine itself: git looks there first."""
_WORD: Final = re.compile(r"[a-z0-9]+")
_KINDS: Final = {IssueClass.BUG: "bug", IssueClass.FEATURE: "feat", IssueClass.CHORE: "chore"}


def is_branch_name(name: str) -> bool:
    """Say whether git takes `name` for a branch, as git-check-ref-format(1) has it, without a process."""
    return bool(name) and _REFUSED.search(name) is None


def form_refusal(name: str) -> str | None:
    """Return why nothing can be made of `name`, in words that an agent can act on; else `None`."""
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
    """Return why `name` as it stands cannot be a work order's branch: its form, or what else it is read as."""
    if refusal := form_refusal(name):
        return refusal
    if _OWN.match(name):
        return f"{name} would be read as a ref of Septet's own: choose another name"
    if _COMMIT.fullmatch(name) or _PSEUDO_REF.fullmatch(name) or name.partition("/")[0].lower() in _FOLDERS:
        return f"git would read {name} as something else than a branch: choose another name"
    return None


def _as_prefix(prefix: str) -> str:
    if prefix and (refusal := name_refusal(f"{prefix}x")):
        message = f"cannot begin a branch's name: {refusal}"
        raise ValueError(message)
    return prefix


BranchPrefix = Annotated[str, Field(max_length=_LONGEST_PREFIX), AfterValidator(_as_prefix)]
"""What all branches of work orders begin with, such as `septet/`; empty: the agent chooses the whole name."""


@dataclass(frozen=True, slots=True)
class FirstPart:
    """What the engine puts before the words that an agent has for its branch: `septet/bug-7-`."""

    prefix: str
    issue_class: IssueClass | None
    number: str
    """The issue's; empty where it has none, and the work order's id stands in its place."""
    order_id: str

    def names_for(self, words: str) -> tuple[str, ...]:
        """Return the names that an agent's may become: the first that is free on the origin is to be taken.

        The second ends in the work order's id, for others may have worked on the issue. The last ones have no
        folder, for where an origin has a branch of the folder's name.
        """
        order_id = self.order_id if is_branch_name(f"x-{self.order_id}") else "-".join(_words(self.order_id))
        kind = _KINDS[self.issue_class] if self.issue_class else "work"
        stem = "-".join(filter(None, (kind, self.number or order_id, self._slug(words))))
        stems = (stem, f"{stem}-{order_id}") if self.number else (stem,)
        firsts = (self.prefix, self.prefix.replace("/", "-"))
        return tuple(dict.fromkeys(f"{first}{each}" for first in firsts for each in stems))

    def _slug(self, text: str) -> str:
        """Return an agent's own words, without those that stand before them anyhow."""
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
    """Return an address without password and token; the user stays where ssh needs one. A path stays as it is.

    Of an `http` or `https` address the user goes too, for it may be a token; and so does a query, or a fragment.
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
"""It goes into search attributes, rows and summaries, of which not all are sealed."""
