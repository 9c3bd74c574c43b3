"""What one round on a pull request answers, as it was read: beside the vault, and the same in every try."""

import json
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from septet.contracts.rework import PreparedRework
from septet.contracts.wire import Wire
from septet.errors import WorkspaceError
from septet.git.engine.place import Place
from septet.system.durable import read_model, write_durably

_FILE: Final = "rework.json"


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
    write_durably(place.records / _FILE, rework.model_dump_json().encode())


def read_frozen_rework(place: Place, run_id: str, number: int) -> FrozenRework | None:
    """Return what a round answers; `None` where it was not prepared."""
    frozen = read_model(place.records / _FILE, FrozenRework)
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
