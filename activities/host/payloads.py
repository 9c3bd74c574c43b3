"""Read single payloads, such as memos in the server's lists, also if they are sealed."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowExecution
from temporalio.common import RawValue
from temporalio.converter import DataConverter

from septet.errors import SealedError

Model = TypeVar("Model", bound=BaseModel)


async def read_json(converter: DataConverter, payload: Payload) -> bytes:
    """Return a payload's JSON, decrypted if the payload is sealed.

    Raises:
        SealedError: The payload is sealed, and no key of this client opens it.
    """
    (raw,) = await converter.decode([payload], [RawValue])
    content: bytes = raw.payload.data
    return content


async def memo_json(row: WorkflowExecution, name: str) -> bytes | None:
    """Return the JSON of one value in a workflow's memo; `None` if the memo has no such value.

    Raises:
        SealedError: The payload is sealed, and no key of this client opens it.
    """
    payload = row.raw_info.memo.fields.get(name)
    return None if payload is None else await read_json(row.data_converter, payload)


async def read_memo(row: WorkflowExecution, name: str, kind: type[Model]) -> Model | None:
    """Return one value in a workflow's memo; `None` if the value is missing or unreadable.

    Any client can add workflows to the server's lists, so an unreadable memo must not break a list.
    """
    try:
        return kind.model_validate_json(await memo_json(row, name) or b"null")
    except (SealedError, ValidationError):
        return None
