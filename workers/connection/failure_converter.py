"""Failures in Temporal's histories: the cause in words, and no stack of what is not ours."""

import re
from typing import Final

from temporalio.api.failure.v1 import Failure
from temporalio.converter import DefaultFailureConverter, PayloadConverter
from temporalio.exceptions import ApplicationError

from septet.system.masking import mask
from septet.system.text import cut_bytes

_FAILURE_BYTES: Final = 3500
"""The server keeps 4,096 of a failure that is tried again, and of a longer one not even its words."""
_SEALED_FAILURE_BYTES: Final = 2700
"""Before it is sealed, which adds less than 350 for its words and as many for its details."""
_MESSAGE_BYTES: Final = 2500
_SHORTEST_MESSAGE: Final = 200
"""Characters. Where details are so long that it has no room either, the failure is longer than what is kept."""
_STACK_BYTES: Final = 1000
_ENCODED: Final = "Encoded failure"
"""What the SDK itself writes where the words are sealed."""
_FRAME: Final = re.compile(r'^  File "(?P<file>[^"\n]*)".*\n(?:(?!  File ).*\n?)*', re.MULTILINE)
_INSTALLED: Final = ("/site-packages/", "/dist-packages/", "/lib/python")


class FailureConverter(DefaultFailureConverter):
    """Writes failures of bounded size.

    What is raised on purpose, an `ApplicationError`, says itself what happened: it goes without stack and causes.
    Of a defect the frames that are ours stay, and the words of what it came from. A worker's log has it all.
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
        """Write an exception into `failure`; each of its causes comes here by itself."""
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
    """Mask and bound a failure's words; leave the frames that are ours; causes are told by their words alone."""
    failure.message = cut_bytes(mask(failure.message), _MESSAGE_BYTES)
    frames = [match[0] for match in _FRAME.finditer(failure.stack_trace) if not _is_installed(match["file"])]
    while sum(map(len, frames)) > _STACK_BYTES:
        frames.pop(0)
    failure.stack_trace = mask("".join(frames))
    if failure.HasField("cause"):
        _shorten(failure.cause)


def _is_installed(file: str) -> bool:
    return any(folder in file for folder in _INSTALLED)
