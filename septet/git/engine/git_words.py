"""The parts of git's messages that people may see, and Septet's errors for messages of a refusing remote.

If an agent has replaced `packed-refs`, `alternates` or a config by a link, git quotes another user's file.
Therefore an error has only phrases of git itself.
"""

import re
import shlex
from typing import Final

from septet.errors import (
    GitError,
    GitUnavailableError,
    InvalidInputError,
    NotFoundError,
    RemoteFullError,
    SeptetError,
)
from septet.system.own_process import own_log

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


def shown_words(stderr: bytes) -> str:
    """Return git's own phrases in its stderr; if there are none, a sentence about the worker's log.

    The result has no content of files. It may have the names of files that git was given or made.
    """
    text = stderr.decode(errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    phrases = [": ".join(match[0].rstrip(": ") for match in _KNOWN.finditer(line)) for line in lines]
    if not all(phrases):
        own_log().debug("git_said", text=text[-2000:])
        phrases = list(filter(None, phrases)) or [_MORE]
    return "; ".join(dict.fromkeys(phrases)) or "it said nothing"


def looks_damaged(message: str) -> bool:
    """Return whether an error's text may come from damaged files."""
    return _SIGNS.search(message) is not None


UNREACHED_REMEDY: Final = "Check the network between this machine and the host."

REMOTE_IS_FULL: Final = (
    r"remote(:| unpack failed:?).{0,500}"
    r"(no space left on device|too many open files|resource temporarily unavailable)"
)
"""The pattern of messages about a remote whose own machine has no disk space or other resource."""

_FAILURES: Final[tuple[tuple[tuple[str, ...], type[SeptetError], str, str], ...]] = (
    (
        ("dubious ownership",),
        GitError,
        "belongs to another user",
        (
            "Run `git config --global --add safe.directory PATH` as the worker's user and restart the worker, or "
            "give the folder to that user. Then run `septet retry`."
        ),
    ),
    (
        ("unknown repository extension", "expected git repo version"),
        GitError,
        "has a form that this machine's git does not know",
        (
            "Install a newer git for the worker (2.45 knows reftable), or run "
            "`git refs migrate --ref-format=files` in the repository with the git that made it."
        ),
    ),
    ((REMOTE_IS_FULL,), RemoteFullError, "has no room", RemoteFullError.default_remedy),
    (
        ("host key verification failed",),
        GitError,
        "shows a host key that is not known here",
        "Connect once with ssh by hand as the worker's user, or add the key to known_hosts.",
    ),
    (
        (r"permission denied \((publickey|password|keyboard)",),
        GitError,
        "refused the worker's ssh key",
        "Load a key that may read and write it into the worker's ssh agent, or name one in ~/.ssh/config.",
    ),
    (
        (r"certificate subject (alternative )?name",),
        GitError,
        "shows a certificate for another name",
        "Use the name that its certificate has, and look who answers there.",
    ),
    (
        ("ssl certificate", "certificate verif", "server certificate", "unable to get local issuer"),
        GitError,
        "shows a certificate that is not trusted here",
        (
            "As the worker's user, run `git config --global http.sslCAInfo FILE` with the authority's file, then "
            "run `septet retry ID`."
        ),
    ),
    (
        (
            "returned error: 401",
            "authentication failed",
            "could not read (username|password)",
            "invalid credentials",
        ),
        GitError,
        "refused the worker's credentials",
        (
            "Where the worker (`septet up`) runs, set a valid token of this forge (SEPTET_GITHUB_TOKEN, "
            "SEPTET_GITLAB_TOKEN or SEPTET_GITEA_TOKEN), start the worker again, then run `septet retry ID`."
        ),
    ),
    (
        (
            "returned error: 403",
            "permission to .{0,500} denied",
            "write access to repository not granted",
            "access denied",
        ),
        GitError,
        "denied access to the worker's account",
        "Give the account or its token the right to read and write the repository's contents.",
    ),
    (
        (
            "repository .{0,500}not found",
            "returned error: 404",
            "does not appear to be a git repository",
            "repository .{0,500}does not exist",
        ),
        NotFoundError,
        "is not a repository that the worker can see",
        (
            "If the address is wrong, start a new work order with the right one. A private repository also looks "
            "like this to an account without access: give it access, then run `septet retry ID`."
        ),
    ),
    (
        ("could not resolve host", "name or service not known", "name resolution"),
        GitUnavailableError,
        "cannot be reached: its host name was not found",
        "Check the host's name and this machine's DNS.",
    ),
    (
        (
            r"returned error: (429|5\d\d)",
            "(could ?n[o']t|failed to) connect",
            "connection (refused|reset|timed out|closed)",
            "network is unreachable",
            "no route to host",
            "operation (too slow|timed out)",
            "early eof",
            "unexpected disconnect",
            "hung up unexpectedly",
            "rpc failed",
            "ssl_connect|ssl_error|gnutls",
            "kex_exchange",
            "empty reply",
        ),
        GitUnavailableError,
        "could not be reached",
        UNREACHED_REMEDY,
    ),
    (
        ("permission denied", "insufficient permission", "read-only file system"),
        GitError,
        "denied access to the worker's user",
        "Give the worker's user the right to read and write the folder.",
    ),
)
"""For each failure: the phrases that show it, the error, and words for people; special failures come first.

The order matters: `hung up unexpectedly` also follows a refusal.
"""
_QUOTING: Final = re.compile(r"^(?!remote:).*(?:packed-refs|alternate|config|gitdir|shallow|graft|attribute)")
"""The pattern of lines in which git may quote a line of a file."""


def shallow(url: str) -> InvalidInputError:
    """Return the error for an origin that is a shallow clone, because git does not fetch from one."""
    path = shlex.quote(url) if url.startswith("/") else "PATH"
    return InvalidInputError(
        f"repository: {url} is a shallow clone, which lacks a part of its history.",
        remedy=f"Complete it with `git -C {path} fetch --unshallow`, or name the repository it was cloned from.",
    )


def failure_of(command: str, url: str, stderr: bytes) -> SeptetError:
    """Return the error, with a remedy, for the stderr of a git command that failed at a remote."""
    message, shown = printable(stderr), remote_words(stderr)
    for patterns, error, what, remedy in _FAILURES:
        if any(re.search(pattern, message, re.IGNORECASE) for pattern in patterns):
            owned = re.search(r"dubious ownership in repository at '(.+)'$", message, re.MULTILINE)
            there = shlex.quote(owned[1]) if owned is not None else "PATH"
            return error(f"{url} {what} (git {command}): {shown}", remedy=remedy.replace("PATH", there))
    return GitError(f"git {command} with {url} failed: {shown}")


def remote_words(stderr: bytes) -> str:
    """Return the remote's messages and git's own phrases; see `shown_words`."""
    shown = []
    for line in printable(stderr).splitlines():
        is_failure = any(re.search(each, line, re.IGNORECASE) for patterns, *_ in _FAILURES for each in patterns)
        is_remote = line.startswith(("remote:", "ssh:", "kex_exchange", "curl:")) or is_failure
        shown.append(line if is_remote and _QUOTING.search(line) is None else shown_words(line.encode()))
    return "\n".join(dict.fromkeys(shown))


def printable(output: bytes) -> str:
    """Return the end of an untrusted output without control characters."""
    text = output.decode(errors="replace").replace("\r", "\n")
    clean = "".join(character for character in text if character.isprintable() or character == "\n")
    return "\n".join(line.strip() for line in clean.splitlines() if line.strip())[-2000:]
