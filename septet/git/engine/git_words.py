"""Which of git's messages may be shown: only known phrases, since some messages quote a line of a file.

If `packed-refs`, `alternates` or a config is a link, git reads another user's file and prints the line that it
does not understand. So an error's text holds only phrases of git itself.
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
    """Return git's own phrases from its stderr; without any, a sentence that points to the worker's log.

    The result never holds a file's content; it can hold names of files that git was given or made.
    """
    text = stderr.decode(errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    phrases = [": ".join(match[0].rstrip(": ") for match in _KNOWN.finditer(line)) for line in lines]
    if not all(phrases):
        _log_words(text[-_LOGGED_CHARACTERS:])
        phrases = list(filter(None, phrases)) or [_MORE]
    return "; ".join(dict.fromkeys(phrases)) or "it said nothing"


def _log_words(text: str) -> None:
    import structlog  # commands that log nothing do not pay for the import

    if structlog.is_configured():  # otherwise a command runs this, and its stdout is its answer
        structlog.get_logger().debug("git_said", text=text)


def looks_damaged(message: str) -> bool:
    """Return whether an error's text, which holds git's own words, may come from damaged files."""
    return _SIGNS.search(message) is not None
