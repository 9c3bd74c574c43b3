"""What is read once, before the first agent starts, and lies beside the vault from then on."""

import json
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from septet.contracts.rework import PreparedRework
from septet.contracts.wire import Wire
from septet.errors import WorkspaceError
from septet.git.engine.place import Place
from septet.system.durable import read_model, write_durably

_REWORK_FILE: Final = "rework.json"

_INPUTS_FILE: Final = "papers.json"


class FrozenInputs(Wire):
    """The issue, and the repository's own commands and settings: no edit of an agent changes them."""

    issue: dict[str, JsonValue]
    files: dict[str, bytes]
    """The repository's own commands and settings as of the base commit, by path: text, in UTF-8."""


def write_frozen_inputs(place: Place, inputs: FrozenInputs) -> None:
    """Keep the inputs beside the vault, out of the agent's reach."""
    write_durably(place.records / _INPUTS_FILE, inputs.model_dump_json().encode())


def read_frozen_inputs(place: Place) -> FrozenInputs:
    """Return the inputs of a work order.

    Raises:
        WorkspaceError: They are missing.
    """
    try:
        return FrozenInputs.model_validate_json((place.records / _INPUTS_FILE).read_bytes())
    except FileNotFoundError as error:
        raise WorkspaceError(f"The workspace of {place.order_id} was not opened completely.") from error


class FrozenRework(Wire):
    """One round: the words, and how each of its tries was prepared."""

    run_id: str
    """The run of the watch: the rounds of another one are others."""
    round: int
    words: dict[str, JsonValue]
    prepared: tuple[PreparedRework, ...] = ()
    """By try."""


def write_frozen_rework(place: Place, rework: FrozenRework) -> None:
    """Keep what a round answers out of the agent's reach; that of the round before goes."""
    write_durably(place.records / _REWORK_FILE, rework.model_dump_json().encode())


def read_frozen_rework(place: Place, run_id: str, number: int) -> FrozenRework | None:
    """Return what a round answers; `None` where it was not prepared."""
    frozen = read_model(place.records / _REWORK_FILE, FrozenRework)
    return frozen if frozen is not None and (frozen.run_id, frozen.round) == (run_id, number) else None


def words_of(place: Place, run_id: str, number: int) -> str:
    """Return what a round answers as one line of JSON, in which no text looks like a line of the command.

    Raises:
        WorkspaceError: It is missing.
    """
    frozen = read_frozen_rework(place, run_id, number)
    if frozen is None:
        raise WorkspaceError(f"Round {number} of {place.order_id} was not prepared on this host.")
    return json.dumps(frozen.words, ensure_ascii=False)


def with_conflicts(words: Mapping[str, JsonValue], paths: tuple[str, ...], base: str) -> dict[str, JsonValue]:
    """Return the words with the conflict that is laid into the worktree."""
    conflict: JsonValue = {"with": base, "paths": list(paths)} if paths else None
    return {**words, "conflict": conflict}
