"""Payloads that are read by hand: undone by the client's codec first, so that sealed ones can be read too."""

from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.converter import DataConverter


async def read_json(converter: DataConverter, payload: Payload) -> bytes:
    """Return a payload's JSON as it was before a codec sealed it.

    Args:
        converter: The client's.
        payload: As the server has it.
    """
    (raw,) = await converter.decode([payload], [RawValue])
    content: bytes = raw.payload.data
    return content


def seals(client: Client) -> bool:
    """Say whether what a client writes is sealed; the reasons of a cancel and of a reset are no payloads."""
    return client.data_converter.payload_codec is not None
