"""What may be told of git's own words: known phrases alone, since some of its messages quote a line of a file.

A link in the place of `packed-refs`, `alternates` or a config leads git to a file of somebody else's, and git
prints the line that it does not understand. So nothing of an error's text goes on but phrases that are git's own.
"""

import re
from typing import Final

_FILE: Final = r"'[^'\n]*'"
_ERRNO: Final = (
    r"No space left on device|Disk quota exceeded|Read-only file system|Permission denied|File exists"
    r"|Input/output error|Too many open files|Resource temporarily unavailable"
    r"|Cannot allocate memory|No such file or directory|Not a directory"
)
_DAMAGE: Final = (
    rf"not a git repository(?:: {_FILE})?"
    r"|bad (?:object [0-9a-f]{40}\b|object|tree object|revision|pack header)"
    r"|unable to access '[^'\n]*(?:objects|HEAD)[^'\n]*'"
    r"|unable to (?:read|find|parse|unpack)(?: (?:tree|[0-9a-f]{40}\b))?"
    r"|could not (?:read|parse)(?! username| password)"
    r"|(?:is|are) (?:corrupt|empty|missing|not a valid)"
    r"|missing (?:blob|tree|commit|object|necessary)"
    r"|inflate:|garbage at end|far too short|does not match index|is not a (?:GIT packfile|valid)"
    r"|packfile \S+ (?:cannot be accessed|is truncated)|file is truncated|index file \S+ is too small"
    r"|failed to (?:read|traverse)|hash mismatch|broken link|invalid sha1 pointer|unresolved deltas|early EOF"
    r"|has no object|is not whole|unknown object type|cannot be read|leads to no commit"
)
_REFUSAL: Final = (
    rf"unable to create {_FILE}|cannot lock ref {_FILE}|cannot lock ref|unable to write [a-z]+ ?file"
    r"|some local refs could not be updated"
    rf"|reference already exists|non-fast-forward|failed to push some refs|dubious ownership"
    r"|index file corrupt|index\.lock|bad signature|gpg failed to sign the data|invalid path"
    r"|failed to write commit object|(?:insufficient permission|unable to create temporary file)"
    r"|out of memory|not something we can merge|object format|hash algorithm"
    r"|needed a single revision"
    r"|(?:bad|invalid) (?:config|boolean|numeric)|unexpected line|unterminated line|alternate object path"
)
_SIGNS: Final = re.compile(_DAMAGE, re.IGNORECASE)
_KNOWN: Final = re.compile(rf"{_DAMAGE}|{_REFUSAL}|{_ERRNO}", re.IGNORECASE)
_MORE: Final = "git said more than can be shown: the worker's log has it at level debug"
_LOGGED_CHARACTERS: Final = 2000


def shown_words(stderr: bytes) -> str:
    """Return the phrases of git's own in what it printed; where there is none, where its words are to be found.

    No byte of a file's content is among them; names of files are, where git was given them or made them.
    """
    text = stderr.decode(errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    phrases = [": ".join(match[0].rstrip(": ") for match in _KNOWN.finditer(line)) for line in lines]
    if not all(phrases):
        _log_words(text[-_LOGGED_CHARACTERS:])
        phrases = list(filter(None, phrases)) or [_MORE]
    return "; ".join(dict.fromkeys(phrases)) or "it said nothing"


def _log_words(text: str) -> None:
    import structlog  # commands that log nothing do not pay for it

    if structlog.is_configured():  # else a command runs this, whose stdout is its answer
        structlog.get_logger().debug("git_said", text=text)


def looks_damaged(message: str) -> bool:
    """Say whether an error's text, git's own words in it, may come from damaged files."""
    return _SIGNS.search(message) is not None
