"""Seal bytes under a passphrase: whoever does not have it can neither read nor change them."""

from typing import Final

from septet.errors import SeptetError

_SALT_BYTES: Final = 16


class SealError(SeptetError):
    """What was sealed cannot be opened."""

    default_remedy = "Set the same SEPTET_CHECKPOINT_KEY on all hosts."


def seal(passphrase: str, content: bytes, about: str) -> bytes:
    """Return `content` sealed; it can be opened only as what it is `about`. The key is stretched by argon2id."""
    from nacl.secret import SecretBox
    from nacl.utils import random

    salt = random(_SALT_BYTES)
    return salt + SecretBox(_key(passphrase, salt)).encrypt(about.encode() + b"\0" + content)


def unseal(passphrase: str, content_sealed: bytes, about: str) -> bytes:
    """Return what was sealed.

    Raises:
        SealError: It was sealed under another passphrase or about something else, or it was changed.
    """
    from nacl.exceptions import CryptoError
    from nacl.secret import SecretBox

    salt, box = content_sealed[:_SALT_BYTES], content_sealed[_SALT_BYTES:]
    try:
        label, _, content = SecretBox(_key(passphrase, salt)).decrypt(box).partition(b"\0")
    except (CryptoError, ValueError) as error:
        raise SealError(f"{about} cannot be opened with this key.") from error
    if label != about.encode():
        raise SealError(f"What is sealed as {about} is about something else.")
    return content


def _key(passphrase: str, salt: bytes) -> bytes:
    from nacl.pwhash import argon2id
    from nacl.secret import SecretBox

    return argon2id.kdf(
        SecretBox.KEY_SIZE,
        passphrase.encode(),
        salt,
        opslimit=argon2id.OPSLIMIT_INTERACTIVE,
        memlimit=argon2id.MEMLIMIT_INTERACTIVE,
    )
