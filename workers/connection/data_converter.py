"""Convert values to and from Temporal's payloads: pydantic's JSON, masked, and sealed if there are keys."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.common import RawValue
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverter,
    PayloadCodec,
    PayloadConverter,
)
from temporalio.exceptions import ApplicationError

from septet.contracts.seal import UNSEALED_INPUT, is_sealed, refusal_of
from septet.errors import SealedError
from septet.system.masking import mask, mask_json
from septet.system.text import cut_bytes
from workers.connection.payload_codec import SealedDataConverter

_OF_ALL_KINDS: Final = tuple(PydanticPayloadConverter().converters.values())
"""The SDK's converters, which cache types. The SDK makes many payload converters; all of them share these."""


class MaskingPayloadConverter(PydanticPayloadConverter):
    """Masks keys in everything that Temporal keeps: inputs, results, heartbeats, failures' details, memos.

    The masking comes before the sealing.
    """

    def __init__(self) -> None:
        CompositePayloadConverter.__init__(self, *_OF_ALL_KINDS)

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        """Return the values as payloads, masked."""
        payloads = super().to_payloads(values)
        for payload in payloads:
            payload.data = mask_json(payload.data)
        return payloads

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Return the values of payloads. A caller that requests raw values must refuse unsealed values itself.

        Raises:
            SealedError: The payloads are sealed, and this process has no keys; another worker may retry a
                workflow's task.
            ApplicationError: The payloads must be refused; the error fails a workflow, and drops a signal.
        """
        for payload, hint in zip_longest(payloads, type_hints or ()):
            if is_sealed(payload.metadata):
                raise SealedError
            if hint is not RawValue and (reason := refusal_of(payload.metadata)) is not None:
                raise ApplicationError(reason, type=UNSEALED_INPUT, non_retryable=True)
        return super().from_payloads(payloads, type_hints)


_FAILURE_BYTES: Final = 3500
"""The most bytes of a failure. The server stores at most 4,096 bytes, and drops the message of a longer failure.
"""
_SEALED_FAILURE_BYTES: Final = 2700
"""The most bytes of a failure before it is sealed; the sealing adds less than 700 bytes."""
_SHORTEST_MESSAGE: Final = 200
"""A message of at most this many characters is not shortened further."""
_STACK_BYTES: Final = 1000
_ENCODED: Final = "Encoded failure"
"""The SDK's text in place of a sealed message."""
_FRAME: Final = re.compile(r'^  File "(?P<file>[^"\n]*)".*\n(?:(?!  File ).*\n?)*', re.MULTILINE)
_INSTALLED: Final = ("/site-packages/", "/dist-packages/", "/lib/python")


class FailureConverter(DefaultFailureConverter):
    """Writes exceptions as failures of limited size.

    An `ApplicationError` explains itself, so its stack and causes are dropped. Any other exception keeps its
    causes' messages and Septet's frames of its stack. A worker's log has everything.
    """

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        """Write an exception into `failure`."""
        super().to_failure(exception, payload_converter, failure)
        if isinstance(exception, ApplicationError):
            failure.ClearField("cause")
            failure.ClearField("stack_trace")
        _shorten(failure)
        if failure.ByteSize() > _FAILURE_BYTES:
            failure.ClearField("cause")


class SealedFailureConverter(FailureConverter):
    """Writes a failure's message and stack into a payload, which a codec can seal."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        """Write an exception into `failure`; the SDK calls this for each cause too."""
        super().to_failure(exception, payload_converter, failure)
        message, stack = failure.message, failure.stack_trace
        failure.message, failure.stack_trace = _ENCODED, ""
        _write_words(failure, message, stack, payload_converter)
        if failure.ByteSize() > _SEALED_FAILURE_BYTES:
            failure.ClearField("cause")
        while failure.ByteSize() > _SEALED_FAILURE_BYTES and len(message) > _SHORTEST_MESSAGE:
            message = message[: len(message) * 3 // 4]
            _write_words(failure, message, stack, payload_converter)


def _write_words(failure: Failure, message: str, stack: str, payload_converter: PayloadConverter) -> None:
    words = {"message": message, "stack_trace": stack}
    failure.encoded_attributes.CopyFrom(payload_converter.to_payload(words))


def _shorten(failure: Failure) -> None:
    """Mask and shorten a failure's messages and causes, and keep only Septet's frames of the stack."""
    failure.message = cut_bytes(mask(failure.message), 2500)
    frames = [
        match[0]
        for match in _FRAME.finditer(failure.stack_trace)
        if not any(folder in match["file"] for folder in _INSTALLED)
    ]
    while sum(map(len, frames)) > _STACK_BYTES:
        frames.pop(0)
    failure.stack_trace = mask("".join(frames))
    if failure.HasField("cause"):
        _shorten(failure.cause)


def pydantic_values(codec: PayloadCodec | None, converter: DataConverter | None = None) -> DataConverter:
    """Return `converter` with pydantic's JSON and short failures; add `codec` if the converter has no codec."""
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
    return SealedDataConverter(
        values.payload_converter_class, sealing, values.failure_converter_class, values.external_storage
    )
