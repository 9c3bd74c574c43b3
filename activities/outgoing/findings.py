"""Find keys and changed protected paths in a work order's changes; a person decides on each finding."""

import hashlib
import hmac
import secrets
from typing import Final

from activities.host.claims import AnyClaim
from activities.host.host import Host
from septet.contracts.facts import KeyFinding, tell_findings
from septet.errors import EvidenceError
from septet.git.engine.engine import Git
from septet.git.evidence.added_lines import added_lines, committed_patches, refuse_controls
from septet.git.evidence.protected_changes import ProtectedChange, protected_changes
from septet.git.evidence.worker_keys import FindingsError, refuse_keys_in_commits
from septet.keys.scanner import KeyMatch, KeyScanner
from septet.protected_paths import PROTECTED, OnProtected, ProtectedPaths
from septet.system.durable import write_first
from septet.system.masking import MASK
from septet.system.text import cut, name_some

_NAMED: Final = 20
_PATH_LENGTH: Final = 200
_ID_LENGTH: Final = 12


def found_keys(host: Host, claim: AnyClaim, staged: Git | None, head: str) -> tuple[KeyFinding, ...]:
    """Return the first 20 texts that look like keys, in the commits up to `head` and in the staged changes.

    Findings that a person has allowed, or that the settings at the base commit allow, are left out.

    Raises:
        KeysFoundError: A commit adds a key of the worker.
        EvidenceError: A commit's message has control characters, the commits add more than Septet reads, or the
            scanner did not finish.
        GitError: git could not list the added lines.
    """
    patches = committed_patches(claim.place, claim.began_at, head)
    refuse_keys_in_commits(patches)
    lines = added_lines(patches, staged, head)
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
    # Agents cannot read the salt, so ids reveal no short value.
    path = claim.place.records / "findings.salt"
    if not path.exists():
        write_first(path, secrets.token_hex(32).encode())
    salt = path.read_bytes()
    findings = {
        finding.id: finding
        for finding in (_key_finding(match, salt) for match in matches)
        if finding.id not in claim.call.allowed_findings
    }
    return tuple(findings.values())[:_NAMED]


def _key_finding(match: KeyMatch, salt: bytes) -> KeyFinding:
    """Return a finding whose id is a salted digest of the file and the value, and so reveals no value."""
    facts = b"\0".join((match.rule.encode(), match.line.path.encode(), match.value))
    return KeyFinding(
        id=hmac.new(salt, facts, hashlib.sha256).hexdigest()[:_ID_LENGTH],
        path=cut(match.line.path.replace(match.value.decode(errors="replace") or MASK, MASK), _PATH_LENGTH),
        line=max(match.line.number, 0),
        rule=match.rule,
        commit=match.line.commit[:12],
    )


def refuse_findings(
    host: Host, claim: AnyClaim, staged: Git | None, head: str, tree: str
) -> tuple[ProtectedChange, ...]:
    """Raise if a finding waits for a decision, in the commits up to `head` or in the staged changes.

    Args:
        staged: The index with the changes staged on `head`; `None` if `head` holds the whole work.
        tree: The tree of the work, or the commit `head` if it holds the whole work.

    Returns:
        The allowed changes of protected paths.

    Raises:
        FindingsError: The changes add a text that looks like a key, or change a protected path; the message names
            where.
        EvidenceError: The changes may not be committed at all, or could not be searched.
        GitError: git could not list the changes.
    """
    keys = found_keys(host, claim, staged, head)
    changes = changes_of_protected(host, claim, tree)
    _refuse(keys, _waiting_paths(host, claim, changes, opens=claim.call.rework is None))
    return changes


def refuse_paths(host: Host, claim: AnyClaim, changes: tuple[ProtectedChange, ...], *, opens: bool) -> None:
    """If a protected change waits for a person, raise FindingsError, or EvidenceError with the setting `refuse`.

    Args:
        opens: Whether the push opens a pull request; with the setting `draft`, no change then waits.
    """
    _refuse((), _waiting_paths(host, claim, changes, opens=opens))


def changes_of_protected(
    host: Host, claim: AnyClaim, tree: str, began_at: str = ""
) -> tuple[ProtectedChange, ...]:
    """Return a tree's changes of protected paths since work began; in a round, only those not on the forge yet.

    Args:
        began_at: The commit from which to compare; by default the claim's `began_at`.
    """
    protected = claim.repository_settings.protected
    if protected is None:
        protected = host.settings.protected if host.settings.protected is not None else PROTECTED
    rework = claim.call.rework
    since = tuple(dict.fromkeys((began_at or claim.began_at, *((rework.head,) if rework is not None else ()))))
    return protected_changes(claim.place, ProtectedPaths(protected), since, tree)


def on_protected(host: Host, claim: AnyClaim) -> OnProtected:
    """Return the setting for protected paths: the repository's at the base commit, or else the worker's."""
    return claim.repository_settings.on_protected or host.settings.on_protected


def notice_of(changes: tuple[ProtectedChange, ...]) -> str:
    """Return the notice for the top of a pull request that changes protected paths; empty without changes."""
    if not changes:
        return ""
    named = [f"`{cut(change.path, _PATH_LENGTH).replace('`', chr(39))}`" for change in changes]
    return f"**Changes what CI, forges or agents act on unreviewed:** {name_some(named, _NAMED)}"


def _waiting_paths(
    host: Host, claim: AnyClaim, changes: tuple[ProtectedChange, ...], *, opens: bool
) -> tuple[KeyFinding, ...]:
    """Return the findings that no person has allowed: one for each of the first 20 changes, one for all others.

    With the setting `draft`, no change waits if the push opens a pull request; with `refuse`, raise EvidenceError.
    """
    policy = on_protected(host, claim)
    if not changes or (policy == "draft" and opens):
        return ()
    findings = [
        KeyFinding(kind="path", id=change.id, path=cut(change.path, _PATH_LENGTH), rule=cut(change.what, 120))
        for change in changes[:_NAMED]
    ]
    if rest := changes[_NAMED:]:
        joined = hashlib.sha256(" ".join(change.id for change in rest).encode()).hexdigest()[:_ID_LENGTH]
        last = f"from {rest[0].path} to {rest[-1].path}"
        findings.append(KeyFinding(kind="path", id=joined, path=f"{len(rest)} more", rule=cut(last, _PATH_LENGTH)))
    left = tuple(finding for finding in findings if finding.id not in claim.call.allowed_findings)
    if left and policy == "refuse":
        places = ", ".join(finding.where for finding in left)
        raise EvidenceError(
            f"The repository lets no work order change {places}: return these to how they were, and leave them."
        )
    return left


def _refuse(keys: tuple[KeyFinding, ...], paths: tuple[KeyFinding, ...]) -> None:
    if not keys and not paths:
        return
    words = [f"{tell_findings(each)}." for each in (keys, paths) if each]
    if keys:
        also = ", and recreate the branch's commits without it" if any(each.commit for each in keys) else ""
        words[0] += f" Take it out{also}: it must not be committed or pushed."
    if paths:
        words.append("A person decides on that; leave it as it is.")
    raise FindingsError(" ".join(words), (*keys, *paths))
