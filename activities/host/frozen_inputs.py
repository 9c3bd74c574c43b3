"""The inputs of a work order or round, read once before its first agent and saved next to the vault."""

import json
from typing import Final

from pydantic import JsonValue

from septet.contracts.rework import PreparedRework
from septet.contracts.wire import Wire
from septet.contracts.workspace import OpenWorkspace
from septet.errors import IssueChangedError, WorkspaceError
from septet.forges.forge import Forge
from septet.forges.issue_history import RequestCheck, TellingForge, Writers
from septet.forges.issue_text import issue_for_agents
from septet.git.engine.place import Place
from septet.settings import Settings
from septet.system.durable import read_model, write_durably
from septet.trackers.choose import tracker_for
from septet.trackers.tracker import IssueMark

_INPUTS_FILE: Final = "papers.json"
_REWORK_FILE: Final = "rework.json"


class FrozenInputs(Wire):
    """What no agent can change: a work order's issue, and the repository's own commands and settings."""

    issue: dict[str, JsonValue]
    files: dict[str, bytes]
    """The repository's command files and settings file at the base commit: their UTF-8 text by path."""


def write_frozen_inputs(place: Place, inputs: FrozenInputs) -> None:
    """Save a work order's inputs next to the vault, where no agent can write."""
    write_durably(place.records / _INPUTS_FILE, inputs.model_dump_json().encode())


def read_frozen_inputs(place: Place) -> FrozenInputs:
    """Return a work order's saved inputs.

    Raises:
        WorkspaceError: The inputs are missing.
    """
    try:
        return FrozenInputs.model_validate_json((place.records / _INPUTS_FILE).read_bytes())
    except FileNotFoundError as error:
        raise WorkspaceError(f"The workspace of {place.order_id} was not opened completely.") from error


class FrozenRework(Wire):
    """The inputs of a round on a pull request: the feedback for the agent, and what was prepared for each try."""

    run_id: str
    """The workflow run that watches the pull request; each run counts its rounds from the beginning."""
    round: int
    words: dict[str, JsonValue]
    prepared: tuple[PreparedRework, ...] = ()


def write_frozen_rework(place: Place, rework: FrozenRework) -> None:
    """Save a round's inputs where no agent can write; they replace the previous round's inputs."""
    write_durably(place.records / _REWORK_FILE, rework.model_dump_json().encode())


def read_frozen_rework(place: Place, run_id: str, number: int) -> FrozenRework | None:
    """Return the inputs of a round; `None` if the round was not prepared."""
    frozen = read_model(place.records / _REWORK_FILE, FrozenRework)
    return frozen if frozen is not None and (frozen.run_id, frozen.round) == (run_id, number) else None


def words_of(place: Place, run_id: str, number: int) -> str:
    """Return a round's feedback as one line of JSON, in which no text can look like a line of the prompt.

    Raises:
        WorkspaceError: The round was not prepared here.
    """
    frozen = read_frozen_rework(place, run_id, number)
    if frozen is None:
        raise WorkspaceError(f"Round {number} of {place.order_id} was not prepared on this host.")
    return json.dumps(frozen.words, ensure_ascii=False)


def read_issue(request: OpenWorkspace, forge: Forge, settings: Settings) -> dict[str, JsonValue]:
    """Return the issue as agents see it; the number is empty for an issue that is not on the forge.

    If a tracker's issue has no mark of a work order, this writes the mark of this work order on the issue.

    Raises:
        IssueChangedError: The text is no longer the text of the request: a person has to read the issue first.
    """
    if request.tracker is not None:
        tracker = tracker_for(request.tracker.tracker, settings)
        tracked = tracker.read_issue(request.tracker.id)
        if tracker.find_mark(tracked.id) is None:
            tracker.put_mark(tracked, IssueMark(request.work_order_id, request.work_order_id))
        return tracked.as_agents_see_it()
    if request.issue is not None:
        issue = forge.issue(request.issue)
        if not isinstance(forge, TellingForge):
            return issue_for_agents(issue, None)
        writers = Writers(forge, settings.trusted_accounts)
        if request.requested is not None:
            why = request.requested.waits_because
            if not why and request.requested.text_sha256 not in {"", issue.text_sha256}:
                check = RequestCheck(forge.issue_history(request.issue), writers, settings.on_unknown_edits)
                why = check.changed_since(request.requested)
            if why:
                raise IssueChangedError(why)
        return issue_for_agents(issue, writers)
    return {"number": "", "title": request.title or "", "body": request.description or "", "url": ""}
