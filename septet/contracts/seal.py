"""The metadata of sealed (encrypted) payloads, and of payloads that a worker refuses."""

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
"""The metadata keys for the sealing key's id, and for the check that distinguishes two keys with the same id."""
ACTIVITY: Final = "septet-activity"
"""The metadata key for the activity that owns the payload: work order, type and id. The payload opens only for its
owner."""
_REFUSED: Final = "septet-refused"
NOTHING_SEALED: Final = MappingProxyType({_REFUSED: b"there is none that could be sealed"})
"""The metadata of the payload that a worker gets, and must refuse, in place of no payload at all."""

CODEC_PATH: Final = "/codec"
"""The path of the endpoint that seals payloads (`/codec/encode`) and opens payloads (`/codec/decode`) for
authorised readers."""
UNSEALED_INPUT: Final = "UnsealedInput"
"""The type of the error that refuses an unsealed input."""


@dataclass(frozen=True, slots=True)
class SealedBox:
    """Sealed content, and the key that opens it."""

    key_id: str
    key_check: str
    content: bytes


def is_sealed(metadata: Mapping[str, bytes]) -> bool:
    """Say whether a payload with this metadata is sealed."""
    return metadata.get(ENCODING) == SEALED


def key_id_of(metadata: Mapping[str, bytes]) -> str | None:
    """Return the id of a sealed payload's key, for people; `None` if the payload is not sealed."""
    if not is_sealed(metadata):
        return None
    return cut(one_line(metadata.get(KEY_ID, b"").decode("utf-8", "replace")), 64) or "?"


def refusing_metadata(metadata: Mapping[str, bytes], *, is_damaged: bool = False) -> dict[str, bytes]:
    """Return the metadata of a payload that a worker must refuse."""
    return {**metadata, _REFUSED: b"its seal is damaged" if is_damaged else b"it is not sealed"}


def refusal_of(metadata: Mapping[str, bytes]) -> str | None:
    """Return why a payload is refused, for people; `None` for an accepted payload."""
    reason = metadata.get(_REFUSED)
    if reason is None:
        return None
    return f"The input is refused: {reason.decode()}. Send it with `septet`, or set Temporal's codec endpoint."
