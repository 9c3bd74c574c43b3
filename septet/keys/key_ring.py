"""Seal (encrypt) Temporal's payloads with keys, and files with a passphrase, by AES-256-GCM."""

import base64
import binascii
import hashlib
import re
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from septet.contracts.seal import SealedBox
from septet.errors import DamagedSealError, InvalidInputError, SeptetError, UnknownKeyError
from septet.system import processes
from septet.system.masking import hide

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LOAD_AGAIN_SECONDS: Final = 5.0
"""The fewest seconds between two reads of the keys' source, for a missing key or after a failed read."""
_RUN_IT: Final = "Run it in a shell to see why; it must print the keys and exit with 0."
_FORM: Final = "Each line is an id, a space and 32 bytes in base64. `septet codec new-key ID` prints such a line."

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SealKey:
    """A key for sealing, and its id, which each box (sealed content) names."""

    id: str
    secret: bytes = field(repr=False)

    @property
    def check(self) -> str:
        """A digest that differs between two keys with the same id, and does not reveal the key."""
        return hashlib.sha256(b"septet-seal-key\0" + self.secret).hexdigest()[:16]


class KeyRing:
    """The keys of a process; they are read again if their source changes or a key is missing."""

    def __init__(
        self,
        load: Callable[[], str],
        fingerprint: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the keys from the text that `load` returns; the result of `fingerprint` changes with the text.

        Raises:
            InvalidInputError: The keys cannot be read.
        """
        self._load = load
        self._fingerprint = fingerprint
        self._lock = threading.Lock()
        self._clock = clock
        self._read = self._tried = fingerprint()
        """The fingerprints of the source at the last read, and at the last try."""
        self._keys = parse_keys(load())
        self._tried_at = clock()

    def seal(self, content: bytes, about: bytes = b"") -> SealedBox:
        """Return `content` sealed by the first key; the box opens only with the same `about`."""
        self._follow_source()
        key = next(iter(self._keys.values()))
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return SealedBox(key.id, key.check, nonce + AESGCM(key.secret).encrypt(nonce, content, about))

    def open(self, box: SealedBox, about: bytes = b"") -> bytes:
        """Return the content of a box.

        Raises:
            UnknownKeyError: This process does not have the key; repeat the call when it has the key.
            DamagedSealError: The box was changed, or was sealed with another `about` or another key.
        """
        key = self._key_of(box)
        nonce, content = box.content[:_NONCE_BYTES], box.content[_NONCE_BYTES:]
        try:
            return AESGCM(key.secret).decrypt(nonce, content, about)
        except (InvalidTag, ValueError) as error:
            message = f"What is sealed with key {box.key_id} was changed, or was never sealed with it."
            raise DamagedSealError(message) from error

    def knows(self, box: SealedBox) -> bool:
        """Return whether this process has the box's key now, without another read of the source."""
        key = self._keys.get(box.key_id)
        return key is not None and key.check == box.key_check

    def read_again(self) -> None:
        """Read the keys again; if this raises, the present keys stay in use.

        Raises:
            InvalidInputError: The source cannot be read.
        """
        with self._lock:
            self._tried_at = self._clock()
            self._tried = self._fingerprint()
            self._keys = parse_keys(self._load())
            self._read = self._tried

    @property
    def may_read_again(self) -> bool:
        """Whether the source has changed since the last try, or the last try was long enough ago."""
        return self._clock() - self._tried_at >= _LOAD_AGAIN_SECONDS or self._fingerprint() != self._tried

    def _follow_source(self) -> None:
        """Read the keys again if the source has changed; keep the present keys if the read fails."""
        if self._fingerprint() == self._read or not self.may_read_again:
            return
        try:
            self.read_again()
        except SeptetError as error:
            _log.warning("seal_keys_not_read", error=error.message)

    def _key_of(self, box: SealedBox) -> SealKey:
        key = self._keys.get(box.key_id)
        if key is None:
            raise UnknownKeyError(f"This is sealed with key {box.key_id}, which is not known here.")
        if key.check != box.key_check:
            raise UnknownKeyError(f"This is sealed with a different key {box.key_id} from the one here.")
        return key


def parse_keys(lines: str) -> Mapping[str, SealKey]:
    """Return the keys in a text with a key in each line, by id; skip empty lines and lines that begin with `#`.

    Raises:
        InvalidInputError: A line is not a key, or no line has a key; the message names the line, never the key.
    """
    keys: dict[str, SealKey] = {}
    for number, line in enumerate(lines.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key = _parse_line(line, number)
        if key.id in keys:
            raise InvalidInputError(f"Line {number} of the seal keys repeats the id {key.id}.", remedy=_FORM)
        keys[key.id] = key
        hide((base64.b64encode(key.secret).decode(),))
    if not keys:
        raise InvalidInputError("There is no key among the seal keys.", remedy=_FORM)
    return keys


def new_key_line(key_id: str) -> str:
    """Return a line with a new random key, for a file of keys.

    Raises:
        InvalidInputError: The id is not valid.
    """
    if not _ID.fullmatch(key_id):
        remedy = "Choose another one: septet codec new-key 2026-11"
        message = "The id of a key has up to 64 letters, digits, dots, hyphens and underscores."
        raise InvalidInputError(message, remedy=remedy)
    return f"{key_id} {base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}"


def keys_in_file(path: Path) -> KeyRing:
    """Return the keys in a file, which is read again whenever the file changes.

    Raises:
        InvalidInputError: The file cannot be read.
    """
    path = path.expanduser()

    def load() -> str:
        try:
            with path.open("rb") as file:
                return file.read(64 * 1024).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            remedy = "Name a file in SEPTET_SEAL_KEYS_FILE that this user can read."
            raise InvalidInputError(f"The seal keys in {path} cannot be read: {error}.", remedy=remedy) from error

    def fingerprint() -> object:
        try:
            status = path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    return KeyRing(load, fingerprint)


def keys_of_command(command: str, env: Mapping[str, str]) -> KeyRing:
    """Return the keys that a command prints; the command runs now, and again if a key is missing.

    `command` is split into words as by a shell, but no shell runs.

    Raises:
        InvalidInputError: The command failed, or printed no keys.
    """

    def load() -> str:
        try:
            done = processes.run(shlex.split(command), env=env, timeout_seconds=30.0)
        except (OSError, ValueError) as error:
            raise InvalidInputError(f"SEPTET_SEAL_KEYS_COMMAND cannot run: {error}.", remedy=_RUN_IT) from error
        if done.exit_code != 0 or done.timed_out:
            words = done.stderr.decode("utf-8", "replace").strip()[-300:]
            message = f"SEPTET_SEAL_KEYS_COMMAND failed with exit code {done.exit_code}: {words}"
            raise InvalidInputError(message, remedy=_RUN_IT)
        return done.stdout.decode("utf-8", "replace")

    return KeyRing(load)


def _parse_line(line: str, number: int) -> SealKey:
    key_id, _, encoded = line.strip().partition(" ")
    try:
        secret = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not _ID.fullmatch(key_id) or len(secret) != KEY_BYTES:
        raise InvalidInputError(f"Line {number} of the seal keys is not a key.", remedy=_FORM)
    return SealKey(key_id, secret)


_SALT_BYTES: Final = 16
_MEMORY_KIB: Final = 64 * 1024
"""argon2id's memory, by libsodium's interactive parameters: each guess of a passphrase takes 0.1 seconds."""


class SealError(SeptetError):
    """What was sealed cannot be opened."""

    default_remedy = "Set the same SEPTET_CHECKPOINT_KEY on all hosts."


def seal(passphrase: str, content: bytes, about: str) -> bytes:
    """Return `content` sealed by AES-256-GCM with a key that argon2id derives from `passphrase`.

    `unseal` opens the result only with the same passphrase and the same `about`, which names the content.
    """
    salt, nonce = secrets.token_bytes(_SALT_BYTES), secrets.token_bytes(_NONCE_BYTES)
    return salt + nonce + AESGCM(_key(passphrase, salt)).encrypt(nonce, content, about.encode())


def unseal(passphrase: str, content_sealed: bytes, about: str) -> bytes:
    """Return the content that `seal` has sealed.

    Raises:
        SealError: The passphrase or `about` differs, or the content was changed.
    """
    salt, rest = content_sealed[:_SALT_BYTES], content_sealed[_SALT_BYTES:]
    try:
        return AESGCM(_key(passphrase, salt)).decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], about.encode())
    except (InvalidTag, ValueError) as error:
        raise SealError(f"{about} cannot be opened with this key.") from error


def _key(passphrase: str, salt: bytes) -> bytes:
    stretched = Argon2id(salt=salt, length=KEY_BYTES, iterations=2, lanes=1, memory_cost=_MEMORY_KIB)
    return stretched.derive(passphrase.encode())
