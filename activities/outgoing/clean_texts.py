"""Clean the texts that an agent wrote for a forge: mask keys in them, and sign commits off."""

from collections.abc import Callable
from functools import partial
from typing import Final

from activities.host.claims import AnyClaim
from activities.host.host import Host
from septet.contracts.steps import StepCall
from septet.git.commits.commit import clean_messages, with_trailer
from septet.git.engine.address import parse_address
from septet.git.engine.configuration import identity
from septet.git.worktree.view import view_git
from septet.keys.scanner import NAME, AddedLine, KeyScanner
from septet.outgoing.text import Outgoing
from septet.system.masking import MASK, mask

_RAW: Final = {"github.com": "https://raw.githubusercontent.com/"}


def outgoing_of(host: Host, call: StepCall, *, closes: bool = True, masks: list[str] | None = None) -> Outgoing:
    """Return the object that cleans a work order's texts; if `closes` is false, no text closes the order's issue.

    Args:
        masks: The list to which the rule of each masked key is added.
    """
    workspace = call.workspace
    address = parse_address(workspace.repository)
    sites = (f"https://{address.host}/", f"http://{address.host}/", _RAW.get(address.host, ""))
    projects = filter(None, (workspace.project, workspace.fork))
    pictures = (
        [f"{site}{project}/" for project in projects for site in filter(None, sites)] if address.host else []
    )
    return Outgoing(
        closes=_own_references(call) if closes else frozenset(),
        pictures=tuple(pictures),
        without_keys=partial(_mask_keys, KeyScanner(host.state.key_scanner), [] if masks is None else masks),
    )


def outgoing_for(host: Host, claim: AnyClaim, masks: list[str] | None = None) -> Outgoing:
    """Return the object that cleans a work order's texts as its repository's settings say."""
    closes = claim.repository_settings.pull_request.closes_issue
    return outgoing_of(host, claim.call, closes=closes, masks=masks)


def message_of(host: Host, claim: AnyClaim) -> Callable[[str], str]:
    """Return a function that cleans an agent's commit message, and signs it off if settings want that."""
    outgoing, line = outgoing_for(host, claim), _sign_off(host, claim)
    return lambda message: with_trailer(outgoing.message(message), line)


def clean_commits(host: Host, claim: AnyClaim, assistance: str, *since: str) -> None:
    """Clean the messages of the agent's own commits after the commits `since`, as `message_of` does.

    The messages that Septet wrote in an earlier attempt keep their last line, `assistance`.
    """
    clean = message_of(host, claim)
    kept = tuple(dict.fromkeys(filter(None, (claim.began_at, *since))))

    def again(message: str) -> str:
        return with_trailer(clean(message), assistance if assistance in message.splitlines() else "")

    clean_messages(claim.place, kept, again)


def has_key(host: Host, name: str) -> bool:
    """Return whether a name contains text that looks like a key.

    Raises:
        EvidenceError: The scanner did not finish.
    """
    return bool(
        KeyScanner(host.state.key_scanner).scan([AddedLine("(name)", NAME, name.encode(errors="replace"))])
    )


def _own_references(call: StepCall) -> frozenset[str]:
    workspace, number = call.workspace, call.workspace.issue_number
    numbered = (f"#{number}", f"gh-{number}", f"{workspace.project}#{number}") if number.isdecimal() else ()
    tracked = (workspace.tracker.key,) if workspace.tracker is not None else ()
    return frozenset(each.lower() for each in (*numbered, *tracked, workspace.issue_url or "") if each)


def _sign_off(host: Host, claim: AnyClaim) -> str:
    """Return the committer's sign-off line; empty if the settings want none."""
    if not (claim.repository_settings.sign_off or host.settings.sign_off):
        return ""
    who = identity(view_git(claim.place)).environ
    return f"Signed-off-by: {who['GIT_COMMITTER_NAME']} <{who['GIT_COMMITTER_EMAIL']}>"


def _mask_keys(scanner: KeyScanner, masks: list[str], text: str) -> str:
    """Mask the worker's keys, and all text that looks like a key; add the matching rules to `masks`."""
    text = mask(text)
    lines = [AddedLine("(text)", number, line.encode()) for number, line in enumerate(text.split("\n"), 1)]
    for match in scanner.scan(lines):
        value = match.value.decode(errors="replace").strip()
        text = text.replace(value if value and value in text else match.line.content.decode(), MASK)
        masks.append(match.rule)
    return text


def warn_of_masked(masks: list[str]) -> tuple[str, ...]:
    """Return a warning with the rules by which keys were masked; an empty tuple if nothing was masked."""
    rules = ", ".join(dict.fromkeys(masks))
    return (f"what looks like a key was masked in a text for the forge: {rules}",) if masks else ()
