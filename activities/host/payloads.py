"""Read single payloads, such as memos in the server's lists; the client's keys open sealed payloads."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowExecution
from temporalio.common import RawValue
from temporalio.converter import DataConverter

from septet.errors import SealedError

Model = TypeVar("Model", bound=BaseModel)


async def read_json(converter: DataConverter, payload: Payload) -> bytes:
    """Return a payload's JSON as it was before a codec sealed it.

    Raises:
        SealedError: The payload is sealed, and no key of this client opens it.
    """
    (raw,) = await converter.decode([payload], [RawValue])
    content: bytes = raw.payload.data
    return content


async def memo_json(row: WorkflowExecution, name: str) -> bytes | None:
    """Return the JSON of a value in the memo of a workflow; `None` if the memo lacks the value.

    Raises:
        SealedError: The payload is sealed, and no key of this client opens it.
    """
    payload = row.raw_info.memo.fields.get(name)
    return None if payload is None else await read_json(row.data_converter, payload)


async def read_memo(row: WorkflowExecution, name: str, kind: type[Model]) -> Model | None:
    """Return a value in the memo of a workflow; `None` if the value is missing or unreadable here.

    Any client of the server can add a row to its lists: an unreadable row must not hide the other rows.
    """
    try:
        return kind.model_validate_json(await memo_json(row, name) or b"null")
    except (SealedError, ValidationError):
        return None
