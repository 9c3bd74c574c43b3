"""What is read once, before the first agent starts, and lies beside the vault from then on."""

from typing import Final

from pydantic import JsonValue

from septet.contracts.wire import Wire
from septet.errors import WorkspaceError
from septet.git.engine.place import Place
from septet.system.durable import write_durably

_FILE: Final = "papers.json"


class FrozenInputs(Wire):
    """The issue, and the repository's own commands and settings: no edit of an agent changes them."""

    issue: dict[str, JsonValue]
    files: dict[str, bytes]
    """The repository's own commands and settings as of the base commit, by path: text, in UTF-8."""


def write_frozen_inputs(place: Place, inputs: FrozenInputs) -> None:
    """Keep the inputs beside the vault, out of the agent's reach."""
    write_durably(place.records / _FILE, inputs.model_dump_json().encode())


def read_frozen_inputs(place: Place) -> FrozenInputs:
    """Return the inputs of a work order.

    Raises:
        WorkspaceError: They are missing.
    """
    try:
        return FrozenInputs.model_validate_json((place.records / _FILE).read_bytes())
    except FileNotFoundError as error:
        raise WorkspaceError(f"The workspace of {place.order_id} was not opened completely.") from error
