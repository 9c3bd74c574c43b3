"""The conversion of values for the server: pydantic's JSON, masked, and sealed if keys exist."""

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
"""The converters that all payload converters share, with their caches of types: the SDK makes a payload
converter for each workflow, and two for each of its tasks."""


class MaskingPayloadConverter(PydanticPayloadConverter):
    """Masks keys in everything that goes into a history: inputs, results, heartbeats, failures' details, memos.

    It runs before a codec, which may seal the masked value.
    """

    def __init__(self) -> None:
        """Use the shared converters."""
        CompositePayloadConverter.__init__(self, *_OF_ALL_KINDS)

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        """Return the values as payloads, masked."""
        payloads = super().to_payloads(values)
        for payload in payloads:
            payload.data = mask_json(payload.data)
        return payloads

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Return the values of payloads. A caller of raw values must refuse unsealed ones itself.

        Raises:
            SealedError: They are sealed, and this process has no keys: a workflow's task is tried again elsewhere.
            ApplicationError: They must be refused; the error fails a workflow, and drops a signal.
        """
        for payload, hint in zip_longest(payloads, type_hints or ()):
            if is_sealed(payload.metadata):
                raise SealedError
            if hint is not RawValue and (reason := refusal_of(payload.metadata)) is not None:
                raise ApplicationError(reason, type=UNSEALED_INPUT, non_retryable=True)
        return super().from_payloads(payloads, type_hints)


_FAILURE_BYTES: Final = 3500
"""The limit of a failure: the server stores 4,096 bytes of a retried failure, and of a longer one not even the
words."""
_SEALED_FAILURE_BYTES: Final = 2700
"""The limit before sealing, which adds less than 350 bytes for the words and as many for the details."""
_MESSAGE_BYTES: Final = 2500
_SHORTEST_MESSAGE: Final = 200
"""Characters. With details so long that even this has no room, the failure is longer than the server stores."""
_STACK_BYTES: Final = 1000
_ENCODED: Final = "Encoded failure"
"""The SDK's own text for sealed words."""
_FRAME: Final = re.compile(r'^  File "(?P<file>[^"\n]*)".*\n(?:(?!  File ).*\n?)*', re.MULTILINE)
_INSTALLED: Final = ("/site-packages/", "/dist-packages/", "/lib/python")


class FailureConverter(DefaultFailureConverter):
    """Writes failures of bounded size.

    An `ApplicationError` is raised on purpose and says itself what happened: it loses stack and causes. A defect
    keeps Septet's frames and the words of its causes. A worker's log has everything.
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
    """Writes the words and the stack of a failure into a payload, which a codec seals with the others."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        """Write an exception into `failure`; the SDK calls it for each cause too."""
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
    """Mask and bound a failure's words; keep Septet's frames, and only the words of causes."""
    failure.message = cut_bytes(mask(failure.message), _MESSAGE_BYTES)
    frames = [match[0] for match in _FRAME.finditer(failure.stack_trace) if not _is_installed(match["file"])]
    while sum(map(len, frames)) > _STACK_BYTES:
        frames.pop(0)
    failure.stack_trace = mask("".join(frames))
    if failure.HasField("cause"):
        _shorten(failure.cause)


def _is_installed(file: str) -> bool:
    return any(folder in file for folder in _INSTALLED)


def pydantic_values(codec: PayloadCodec | None, converter: DataConverter | None = None) -> DataConverter:
    """Return a converter with pydantic models and short failures; its other parts stay, a codec too."""
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
