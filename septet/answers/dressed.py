"""Take the dress off a value: a Markdown link, quotes or backquotes around a path, the full name of a branch."""

import re
from typing import Final

from septet.answers.plain import unwrap

_LINK: Final = re.compile(r"\[(?P<text>[^\[\]\n]+)\]\(<?(?P<target>[^()<>\s]+)>?(?:\s+\"[^\"\n]*\")?\)")
_REF: Final = re.compile(r"(?:refs/heads/|refs/remotes/[^/]+/|remotes/[^/]+/|heads/|origin/)")


def bare_values(dressed: str) -> tuple[str, ...]:
    """Return a value without its dress: nothing where it has none, both parts of a link where they differ."""
    value = unwrap(dressed)
    link = _LINK.fullmatch(value)
    parts = (unwrap(link["text"]), unwrap(link["target"])) if link else (value,)
    return tuple(part for part in dict.fromkeys(parts) if part != dressed)


def bare_branches(dressed: str) -> tuple[str, ...]:
    """Return the names that a dressed branch may have; a ref's full name counts as a dress too."""
    parts = bare_values(dressed) or (dressed,)
    names = dict.fromkeys(_REF.sub("", part, count=1) if _REF.match(part) else part for part in parts)
    return tuple(name for name in names if name != dressed)
