"""How sealed payloads are told from others, and which are refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from septet.system.text import cut, one_line

ENCODING: Final = "encoding"
SEALED: Final = b"binary/encrypted"
"""What a sealed payload's metadata has as its encoding."""
KEY_ID: Final = "encryption-key-id"
KEY_CHECK: Final = "encryption-key-check"
"""Where the metadata has the id of the key that opens it, and what tells two keys of the same id apart."""
ACTIVITY: Final = "septet-activity"
"""Where the metadata has whose input or result it is: work order, type and id. It opens as nothing else."""
_ID_LIMIT: Final = 64
_REFUSED: Final = "septet-refused"
_NOT_SEALED: Final = b"it is not sealed"
_DAMAGED: Final = b"its seal is damaged"
NOTHING_SEALED: Final = MappingProxyType({_REFUSED: b"there is none that could be sealed"})
"""The metadata of the payload that stands where a worker was sent none."""

CODEC_PATH: Final = "/codec"
"""Where those who may read have payloads sealed and opened: below it, `encode` and `decode`."""
UNSEALED_INPUT: Final = "UnsealedInput"
"""The type of the error that refuses it."""


@dataclass(frozen=True, slots=True)
class SealedBox:
    """What is sealed, and the key that opens it."""

    key_id: str
    key_check: str
    content: bytes


def is_sealed(metadata: Mapping[str, bytes]) -> bool:
    """Say whether a payload with this metadata is sealed."""
    return metadata.get(ENCODING) == SEALED


def key_id_of(metadata: Mapping[str, bytes]) -> str | None:
    """Return the id of the key that a payload is sealed with, for people; `None` where it is not sealed."""
    if not is_sealed(metadata):
        return None
    return cut(one_line(metadata.get(KEY_ID, b"").decode("utf-8", "replace")), _ID_LIMIT) or "?"


def refusing_metadata(metadata: Mapping[str, bytes], *, is_damaged: bool = False) -> dict[str, bytes]:
    """Return the metadata of a payload that a worker is not to heed."""
    return {**metadata, _REFUSED: _DAMAGED if is_damaged else _NOT_SEALED}


def refusal_of(metadata: Mapping[str, bytes]) -> str | None:
    """Return why a payload is refused, for people; `None` where it is not."""
    reason = metadata.get(_REFUSED)
    if reason is None:
        return None
    return f"The input is refused: {reason.decode()}. Send it with `septet`, or set Temporal's codec endpoint."
