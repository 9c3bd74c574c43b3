"""Values in Temporal's histories: pydantic's JSON, and no key of this process in it."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Final

from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import CompositePayloadConverter
from temporalio.exceptions import ApplicationError

from septet.contracts.seal import UNSEALED_INPUT, is_sealed, refusal_of
from septet.errors import SealedError
from septet.system.masking import mask_json

_OF_ALL_KINDS: Final = tuple(PydanticPayloadConverter().converters.values())
"""All payload converters share these, with what they keep of types: the SDK makes one for each workflow, and two
for each of its tasks."""


class MaskingPayloadConverter(PydanticPayloadConverter):
    """Masks the keys in whatever goes into a history: inputs, results, heartbeats, details of failures, memos.

    It comes before a codec, which may seal what is left.
    """

    def __init__(self) -> None:
        """Take what all have in common."""
        CompositePayloadConverter.__init__(self, *_OF_ALL_KINDS)

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        """Return the values as the server gets them."""
        payloads = super().to_payloads(values)
        for payload in payloads:
            payload.data = mask_json(payload.data)
        return payloads

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Return the values as they were written; who asks for raw ones refuses what is to be refused.

        Raises:
            SealedError: They are sealed, and this process has no keys: a workflow's task is tried again elsewhere.
            ApplicationError: They are to be refused; it fails a workflow, and drops a signal.
        """
        for payload, hint in zip_longest(payloads, type_hints or ()):
            if is_sealed(payload.metadata):
                raise SealedError
            if hint is not RawValue and (reason := refusal_of(payload.metadata)) is not None:
                raise ApplicationError(reason, type=UNSEALED_INPUT, non_retryable=True)
        return super().from_payloads(payloads, type_hints)
