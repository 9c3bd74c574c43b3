"""Whether what a client writes is sealed."""

from temporalio.client import Client


def seals(client: Client) -> bool:
    """Say whether what a client writes is sealed; the reasons of a cancel and of a reset are no payloads."""
    return client.data_converter.payload_codec is not None
