"""Values that lie in files as JSON. What is missing or broken is no value: whoever reads it has a way without."""

from pathlib import Path
from typing import TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)
Struct = TypeVar("Struct", bound=msgspec.Struct)


def read_model(path: Path, model: type[Model]) -> Model | None:
    """Return the value of a pydantic model in a file; `None` where the file is missing or holds no such value.

    Raises:
        OSError: The file may be there, and cannot be read.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def read_struct(path: Path, struct: type[Struct]) -> Struct | None:
    """Return the value of a msgspec struct in a file; `None` where none can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=struct)
    except (OSError, msgspec.MsgspecError):
        return None
