"""Values in Temporal's histories: pydantic's JSON, and no key of this process in it."""

from collections.abc import Sequence
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticPayloadConverter

from septet.system.masking import mask_json


class MaskingPayloadConverter(PydanticPayloadConverter):
    """Masks the keys in whatever goes into a history: inputs, results, heartbeats, details of failures, memos.

    It comes before a codec, which may seal what is left.
    """

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        """Return the values as the server gets them."""
        payloads = super().to_payloads(values)
        for payload in payloads:
            payload.data = mask_json(payload.data)
        return payloads
