"""Find texts that look like keys in a work order's changes, and that neither repository nor person allows."""

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
from septet.keys.scanner import KeyMatch, KeyScanner
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
    """Return the first twenty texts that look like keys in the commits up to `head` and in the staged changes.

    Findings that a person or the repository's settings (as of the base commit) allow are left out.

    Raises:
        EvidenceError: A commit's message has control characters, the commits add more than is read, or the
            scanner did not finish.
        GitError: git could not list the added lines.
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
    """Return a finding whose id identifies this value in this file, and reveals nothing of the value."""
    facts = b"\0".join((match.rule.encode(), match.line.path.encode(), match.value))
    return KeyFinding(
        id=hmac.new(salt, facts, hashlib.sha256).hexdigest()[:_ID_LENGTH],
        path=cut(_without(match.value, match.line.path), _PATH_LENGTH),
        line=max(match.line.number, 0),
        rule=match.rule,
        commit=match.line.commit[:_COMMIT_LENGTH],
    )


def _without(value: bytes, path: str) -> str:
    """Return a path in which the key's value is masked."""
    return path.replace(value.decode(errors="replace") or MASK, MASK)


def _salt(place: Place) -> bytes:
    """Return the salt of a work order's finding ids, which agents cannot read: ids do not reveal short values."""
    path = place.records / _SALT
    if not path.exists():
        write_first(path, secrets.token_hex(_SALT_BYTES).encode())
    return path.read_bytes()
