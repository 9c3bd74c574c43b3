"""How values go to the server and come back: as pydantic's JSON, masked, and sealed where there are keys."""

from dataclasses import replace
from typing import TYPE_CHECKING

from temporalio.converter import DataConverter, DefaultFailureConverter, PayloadCodec

from septet.settings import Settings
from workers.connection.failure_converter import FailureConverter, SealedFailureConverter
from workers.connection.payload_converter import MaskingPayloadConverter

if TYPE_CHECKING:
    from workers.connection.payload_codec import (
        SealingCodec,  # where nothing is sealed, its cryptography is not imported
    )


def codec_of(settings: Settings, *, serves: bool = False) -> "SealingCodec | None":
    """Return the codec that the settings ask for; `None` where nothing is to be sealed.

    Args:
        settings: Those of this process.
        serves: It is a worker's, which refuses what is not sealed where the settings say so.

    Raises:
        InvalidInputError: The keys cannot be read.
    """
    if settings.seal_keys_file is None and settings.seal_keys_command is None:
        return None
    from workers.connection.payload_codec import sealing_codec

    return sealing_codec(settings, serves=serves)


def pydantic_values(codec: PayloadCodec | None, converter: DataConverter | None = None) -> DataConverter:
    """Let a converter read and write pydantic models, and write failures in short; all else stays, a codec too."""
    converter = converter or DataConverter.default
    sealing = codec if converter.payload_codec is None else None
    own = FailureConverter if sealing is None else SealedFailureConverter
    failures = converter.failure_converter_class
    values = replace(
        converter,
        payload_converter_class=MaskingPayloadConverter,
        failure_converter_class=own if failures is DefaultFailureConverter else failures,
    )
    if sealing is None:
        return values
    from workers.connection.payload_codec import SealedDataConverter

    return SealedDataConverter(
        values.payload_converter_class, sealing, values.failure_converter_class, values.external_storage
    )
