"""What waits for a reader before it leaves: kept for the reader, and not pushed before the reader has spoken."""

from pathlib import Path
from typing import Final

from activities.host.claims import AnyClaim, UnreadError
from activities.host.host import Host
from activities.outgoing.leaving import Leaving
from septet.contracts.facts import tell_findings
from septet.contracts.steps import StepCall
from septet.errors import WorkspaceError
from septet.git.engine.place import Place
from septet.git.evidence.keys_in_work import FindingsError
from septet.system.durable import write_durably
from septet.system.json_files import read_model

_FILE: Final = "leaving.json"


def refuse_unread(host: Host, claim: AnyClaim, leaving: Leaving) -> None:
    """See that a reader has read exactly this, where that is asked for, and that nobody has to decide on it.

    What is not read yet lies beside the vault from now on, for the reader.

    Raises:
        UnreadError: No reader has read it.
        FindingsError: The reader suspects something that no person has let pass.
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
    """Say whether the commit at which HEAD is was read for this call already."""
    reading, leaving = claim.call.reading, read_model(claim.place.records / _FILE, Leaving)
    is_same = reading is not None and leaving is not None and leaving.digest == reading.digest
    return is_same and leaving is not None and leaving.head == claim.evidence.head.sha


def is_here(host: Host, call: StepCall) -> bool:
    """Say whether this host has what a call's reader is to read: another one has begun the push."""
    leaving = read_model(host.place(call.workspace.place_id).records / _FILE, Leaving)
    return leaving is not None and leaving.digest == call.reads


def leaving_of(place: Place, call: StepCall) -> Leaving:
    """Return what a call's reader is to read.

    Raises:
        WorkspaceError: It is not on this host.
    """
    leaving = read_model(place.records / _FILE, Leaving)
    if leaving is None or leaving.digest != call.reads:
        raise WorkspaceError(
            f"What {call.workspace.work_order_id} is about to push is not on this host.",
            remedy=f"`septet retry` takes the step {call.step.value} again.",
        )
    return leaving


def folder_of_reader(host: Host, call: StepCall) -> Path:
    """Return the empty folder in which a reader begins; its finalizer and its next attempts have the same one.

    It is named as a worktree is, after the work order.
    """
    place_id = call.workspace.place_id
    folder = host.state.homes / place_id / f"reader-{call.reads[:16]}" / place_id
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
