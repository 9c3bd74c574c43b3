"""Keep outgoing content for a reader, and allow the push only after the reader's answer."""

from pathlib import Path
from typing import Final

from activities.host.claims import AnyClaim, UnreadError
from activities.host.host import Host
from activities.outgoing.leaving_content import Leaving
from septet.contracts.facts import tell_findings
from septet.contracts.steps import StepCall
from septet.errors import WorkspaceError
from septet.git.engine.place import Place
from septet.git.evidence.worker_keys import FindingsError
from septet.system.durable import read_model, write_durably

_FILE: Final = "leaving.json"


def refuse_unread(host: Host, claim: AnyClaim, leaving: Leaving) -> None:
    """Check that a reader has read exactly this content, if settings want a reader, and that no finding waits.

    Content that no reader has read is written beside the vault, for the reader.

    Raises:
        UnreadError: No reader has read the content.
        FindingsError: The reader has a suspicion that no person has allowed.
    """
    if not (host.settings.read_outgoing or claim.repository_settings.read_outgoing):
        return
    reading = claim.call.reading
    if reading is None or reading.digest != leaving.digest:
        write_durably(claim.place.records / _FILE, leaving.model_dump_json().encode())
        raise UnreadError(leaving.digest)
    if left := tuple(each for each in reading.findings if each.id not in claim.call.allowed_findings):
        raise FindingsError(f"{tell_findings(left)}. A person decides on that; nothing was pushed.", left)


def is_read(claim: AnyClaim) -> bool:
    """Return whether a reader has already read HEAD's commit for this claim's call."""
    reading, leaving = claim.call.reading, read_model(claim.place.records / _FILE, Leaving)
    is_same = reading is not None and leaving is not None and leaving.digest == reading.digest
    return is_same and leaving is not None and leaving.head == claim.evidence.head.sha


def is_here(host: Host, call: StepCall) -> bool:
    """Return whether this host has the content for a call's reader; another host may have begun the push."""
    leaving = read_model(host.place(call.workspace.place_id).records / _FILE, Leaving)
    return leaving is not None and leaving.digest == call.reads


def leaving_of(place: Place, call: StepCall) -> Leaving:
    """Return the content that a call's reader has to read.

    Raises:
        WorkspaceError: The content is not on this host.
    """
    leaving = read_model(place.records / _FILE, Leaving)
    if leaving is None or leaving.digest != call.reads:
        raise WorkspaceError(
            f"What {call.workspace.work_order_id} is about to push is not on this host.",
            remedy=f"`septet retry` takes the step {call.step.value} again.",
        )
    return leaving


def folder_of_reader(host: Host, call: StepCall) -> Path:
    """Return the empty folder in which a reader, its finalizer and its next attempts work.

    The folder is named after the work order, as a worktree is.
    """
    place_id = call.workspace.place_id
    folder = host.state.homes / place_id / f"reader-{call.reads[:16]}" / place_id
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
