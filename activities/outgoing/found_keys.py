"""What looks like a key in a work order's changes, but for what its repository or a person lets pass."""

import hashlib
import hmac
import secrets
from typing import Final

from activities.host.claims import AnyClaim
from activities.host.host import Host
from septet.contracts.facts import KeyFinding
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.evidence.added_lines import added_lines, refuse_controls
from septet.key_scan.scanner import KeyMatch, KeyScanner
from septet.system.durable import write_first
from septet.system.masking import MASK
from septet.system.text import cut

_NAMED: Final = 20
_PATH_LENGTH: Final = 200
_ID_LENGTH: Final = 12
_COMMIT_LENGTH: Final = 12
_SALT: Final = "findings.salt"
_SALT_BYTES: Final = 32


def found_keys(host: Host, claim: AnyClaim, staged: Git | None, head: str) -> tuple[KeyFinding, ...]:
    """Return what looks like a key in the commits up to `head` and in what is staged on it: the first twenty.

    What the repository's settings as of the base commit allow passes, and so does what a person has let pass.

    Raises:
        EvidenceError: A commit's message has control characters, they add more than is read, or the scanner did
            not come to its end.
        GitError: git could not tell what is added.
    """
    lines = added_lines(claim.place, claim.began_at, head, staged)
    refuse_controls(lines)
    matches = [
        match
        for match in KeyScanner(host.state.key_scanner).scan(lines)
        if not any(
            allowed.covers(match.line.path, match.rule) for allowed in claim.repository_settings.allow_findings
        )
    ]
    if not matches:
        return ()
    salt = _salt(claim.place)
    findings = {
        finding.id: finding
        for finding in (_finding(match, salt) for match in matches)
        if finding.id not in claim.call.allowed_findings
    }
    return tuple(findings.values())[:_NAMED]


def _finding(match: KeyMatch, salt: bytes) -> KeyFinding:
    """Return a finding whose id stands for this value in this file, and tells nothing of it."""
    facts = b"\0".join((match.rule.encode(), match.line.path.encode(), match.value))
    return KeyFinding(
        id=hmac.new(salt, facts, hashlib.sha256).hexdigest()[:_ID_LENGTH],
        path=cut(_without(match.value, match.line.path), _PATH_LENGTH),
        line=max(match.line.number, 0),
        rule=match.rule,
        commit=match.line.commit[:_COMMIT_LENGTH],
    )


def _without(value: bytes, path: str) -> str:
    """Return a path that tells nothing of a key that it holds itself."""
    return path.replace(value.decode(errors="replace") or MASK, MASK)


def _salt(place: Place) -> bytes:
    """Return the secret of a work order's ids, out of agents' reach: no short value is guessed from them."""
    path = place.records / _SALT
    if not path.exists():
        write_first(path, secrets.token_hex(_SALT_BYTES).encode())
    return path.read_bytes()
