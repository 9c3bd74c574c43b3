"""The codec that seals payloads before they leave this process, and opens them when they arrive."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
)

from septet.contracts.seal import (
    ACTIVITY,
    ENCODING,
    KEY_CHECK,
    KEY_ID,
    SEALED,
    SealedBox,
    is_sealed,
    refusing_metadata,
)
from septet.errors import DamagedSealError, SeptetError
from septet.settings import Settings
from septet.system.own_process import own_log

if TYPE_CHECKING:
    from septet.keys.key_ring import KeyRing

_ABOUT: Final = b"septet-payload-1"


@dataclass(frozen=True)
class SealingCodec(PayloadCodec, WithSerializationContext):
    """Seals every payload that is written, and opens every sealed payload that is read.

    Unless the worker requires seals, unsealed payloads are accepted, because work may be older than the keys. A
    worker replaces a refused or damaged payload by a marker, which the payload converter and the workflows
    refuse: an error here would only repeat the task. A missing key is an error, because a retry may find the key.
    """

    keys: "KeyRing"
    serves: bool = False
    refuses_unsealed: bool = False
    activity: tuple[str, ...] = ()
    """The workflow, type and id of the activity whose input or result is converted; each empty if unknown."""

    def with_context(self, context: SerializationContext) -> "SealingCodec":
        """Return a codec that binds payloads to the activity of `context`; without an activity, to nothing."""
        activity: tuple[str, ...] = ()
        if isinstance(context, ActivitySerializationContext):
            activity = (context.workflow_id or "", context.activity_type or "", context.activity_id or "")
        return self if activity == self.activity else replace(self, activity=activity)

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Seal the payloads, and return them."""
        return [self._seal(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Open the sealed payloads, and return all payloads; mark unsealed ones if the codec refuses these.

        Raises:
            UnknownKeyError: A payload is sealed with a key that this process does not have.
            DamagedSealError: A payload was changed, and the codec belongs to no worker.
        """
        boxes = [_box_in(payload) for payload in payloads]
        if any(each is not None and not self.keys.knows(each) for each in boxes):
            await self._look_for_key()
        return [
            self._open(each, payload.metadata.get(ACTIVITY, b"")) if each is not None else self._mark(payload)
            for each, payload in zip(boxes, payloads, strict=True)
        ]

    def _seal(self, payload: Payload) -> Payload:
        bound = {ACTIVITY: json.dumps(self.activity).encode()} if self.activity else {}
        box = self.keys.seal(payload.SerializeToString(), _ABOUT + bound.get(ACTIVITY, b""))
        about = {ENCODING: SEALED, KEY_ID: box.key_id.encode(), KEY_CHECK: box.key_check.encode()}
        return Payload(metadata=about | bound, data=box.content)

    def _open(self, box: SealedBox, binding: bytes) -> Payload:
        try:
            return Payload.FromString(self._content(box, binding))
        except DamagedSealError as error:
            if not self.serves:
                raise
            own_log().error("seal_damaged", key=box.key_id, error=error.message)
            return Payload(metadata=refusing_metadata({}, is_damaged=True))

    def _content(self, box: SealedBox, binding: bytes) -> bytes:
        content = self.keys.open(box, _ABOUT + binding)
        if self.activity and not _is_of(binding, self.activity):
            raise DamagedSealError(f"What is sealed with key {box.key_id} is another activity's.")
        return content

    def _mark(self, payload: Payload) -> Payload:
        if not self.refuses_unsealed:
            return payload
        return Payload(metadata=refusing_metadata(payload.metadata), data=payload.data)

    async def _look_for_key(self) -> None:
        if not self.keys.may_read_again:
            return
        try:
            await asyncio.to_thread(self.keys.read_again)
        except SeptetError as error:
            own_log().warning("seal_keys_not_read", error=error.message)


@dataclass(frozen=True)
class SealedDataConverter(DataConverter):
    """A converter that accepts unsealed payloads even if the codec refuses these, except in an activity."""

    async def decode(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Return the values of payloads, sealed or not."""
        return await super(SealedDataConverter, self._as_reader()).decode(payloads, type_hints)

    async def decode_failure(self, failure: Failure) -> BaseException:
        """Return the exception of a failure, sealed or not."""
        return await super(SealedDataConverter, self._as_reader()).decode_failure(failure)

    def _as_reader(self) -> "SealedDataConverter":
        """Return `self` in the context of an activity, otherwise a converter that accepts unsealed payloads."""
        codec = self.payload_codec
        if not isinstance(codec, SealingCodec) or codec.activity or not codec.serves:
            return self
        return replace(self, payload_codec=replace(codec, serves=False, refuses_unsealed=False))


def codec_of(settings: Settings, *, serves: bool = False) -> SealingCodec | None:
    """Return the codec with the keys of the settings; `None` if the settings name no keys.

    Args:
        serves: Whether the codec is a worker's, which refuses unsealed values if the settings require that.

    Raises:
        InvalidInputError: The keys cannot be read.
    """
    if not settings.seals:
        return None
    from septet.keys.key_ring import (  # a process that seals nothing needs no cryptography
        keys_in_file,
        keys_of_command,
    )

    if settings.seal_keys_file is not None:
        keys = keys_in_file(settings.seal_keys_file)
    else:
        keys = keys_of_command(settings.seal_keys_command or "", settings.environ)
    return SealingCodec(keys, serves=serves, refuses_unsealed=serves and settings.seal_required)


def _is_of(binding: bytes, activity: tuple[str, ...]) -> bool:
    """Return whether a payload's `binding` names the activity; unknown parts of the activity match anything."""
    if not binding:
        return False
    workflow, *rest = json.loads(binding)
    return workflow == activity[0] and all(
        one == other or not (one and other) for one, other in zip(rest, activity[1:], strict=True)
    )


def _box_in(payload: Payload) -> SealedBox | None:
    """Return the sealed content of a payload; `None` for an unsealed payload."""
    if not is_sealed(payload.metadata):
        return None
    key_id, check = (payload.metadata.get(name, b"").decode("utf-8", "replace") for name in (KEY_ID, KEY_CHECK))
    return SealedBox(key_id, check, payload.data)
