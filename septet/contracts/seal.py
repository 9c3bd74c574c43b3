"""The metadata of sealed payloads, and of payloads that a worker must refuse."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from septet.system.text import cut, one_line

ENCODING: Final = "encoding"
SEALED: Final = b"binary/encrypted"
"""The encoding in a sealed payload's metadata."""
KEY_ID: Final = "encryption-key-id"
KEY_CHECK: Final = "encryption-key-check"
"""The metadata keys of the sealing key's id, and of a check that distinguishes keys with the same id."""
ACTIVITY: Final = "septet-activity"
"""The metadata key of the activity to which a payload belongs: workflow, type and id. The payload opens only
there."""
_REFUSED: Final = "septet-refused"
NOTHING_SEALED: Final = MappingProxyType({_REFUSED: b"there is none that could be sealed"})
"""The metadata of the payload that replaces a missing payload, so that a worker refuses it."""

CODEC_PATH: Final = "/codec"
"""The path of the HTTP endpoint that seals (`/codec/encode`) and opens payloads (`/codec/decode`)."""
UNSEALED_INPUT: Final = "UnsealedInput"
"""The error type for unsealed input."""


@dataclass(frozen=True, slots=True)
class SealedBox:
    """Sealed content, with the id and a digest (`key_check`) of the key that opens it."""

    key_id: str
    key_check: str
    content: bytes


def is_sealed(metadata: Mapping[str, bytes]) -> bool:
    """Return whether a payload with this metadata is sealed."""
    return metadata.get(ENCODING) == SEALED


def key_id_of(metadata: Mapping[str, bytes]) -> str | None:
    """Return the id of the key that sealed a payload, as a short text to show; `None` without a seal."""
    if not is_sealed(metadata):
        return None
    return cut(one_line(metadata.get(KEY_ID, b"").decode("utf-8", "replace")), 64) or "?"


def refusing_metadata(metadata: Mapping[str, bytes], *, is_damaged: bool = False) -> dict[str, bytes]:
    """Return the metadata by which a worker recognises that it must refuse a payload."""
    return {**metadata, _REFUSED: b"its seal is damaged" if is_damaged else b"it is not sealed"}


def refusal_of(metadata: Mapping[str, bytes]) -> str | None:
    """Return a sentence why a payload must be refused; `None` if it may be used."""
    reason = metadata.get(_REFUSED)
    if reason is None:
        return None
    return f"The input is refused: {reason.decode()}. Send it with `septet`, or set Temporal's codec endpoint."
