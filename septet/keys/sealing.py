"""Seal bytes under a passphrase: without the passphrase nobody can read or change them."""

import secrets
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from septet.errors import SeptetError

_SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32
_PASSES: Final = 2
_MEMORY_KIB: Final = 64 * 1024
"""What libsodium calls interactive: a guess costs a tenth of a second and 64 MiB."""


class SealError(SeptetError):
    """What was sealed cannot be opened."""

    default_remedy = "Set the same SEPTET_CHECKPOINT_KEY on all hosts."


def seal(passphrase: str, content: bytes, about: str) -> bytes:
    """Return `content` sealed by AES-256-GCM under a key that argon2id stretches.

    It can be opened only as what it is `about`.
    """
    salt, nonce = secrets.token_bytes(_SALT_BYTES), secrets.token_bytes(_NONCE_BYTES)
    return salt + nonce + AESGCM(_key(passphrase, salt)).encrypt(nonce, content, about.encode())


def unseal(passphrase: str, content_sealed: bytes, about: str) -> bytes:
    """Return what was sealed.

    Raises:
        SealError: It was sealed under another passphrase or about something else, or it was changed.
    """
    salt, rest = content_sealed[:_SALT_BYTES], content_sealed[_SALT_BYTES:]
    try:
        return AESGCM(_key(passphrase, salt)).decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], about.encode())
    except (InvalidTag, ValueError) as error:
        raise SealError(f"{about} cannot be opened with this key.") from error


def _key(passphrase: str, salt: bytes) -> bytes:
    stretched = Argon2id(salt=salt, length=_KEY_BYTES, iterations=_PASSES, lanes=1, memory_cost=_MEMORY_KIB)
    return stretched.derive(passphrase.encode())
