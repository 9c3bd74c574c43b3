"""A pack of new objects for the vault, which git sees only after it is complete and synced to disk.

One pack for a snapshot costs three `fsync`s and no process. Loose objects would cost one `fsync` each; git's
own commands would cost milliseconds. Format: gitformat-pack(5), version 2, SHA-1, no deltas.
"""

import hashlib
import os
import struct
import tempfile
import time
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from septet.errors import SnapshotError
from septet.system.durable import fsync, fsync_folder

ObjectType = Literal["commit", "tree", "blob"]

_TYPE_BITS: Final[dict[ObjectType, int]] = {"commit": 1, "tree": 2, "blob": 3}
_COMPRESSION: Final = 1
"""zlib's fastest level, because the agent waits."""
_CHUNK_BYTES: Final = 1 << 20
_REMEDY: Final = "Nothing was removed. Make room on that disk, then try again."
_LARGE_OFFSET: Final = 1 << 31
"""The first offset that needs eight bytes in a pack's index."""


def object_id(kind: ObjectType, content: bytes) -> bytes:
    """Return git's id of an object."""
    return hashlib.sha1(b"%s %d\0%s" % (kind.encode(), len(content), content), usedforsecurity=False).digest()


def commit_content(tree: str, parents: Iterable[str], message: bytes) -> bytes:
    """Return the content of a commit with Septet as author and the present time."""
    signature = f"Septet <septet@localhost> {int(time.time())} +0000"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    return "\n".join([*lines, f"author {signature}", f"committer {signature}", "", ""]).encode() + message


class Pack:
    """A pack that is being written; at the end of a `with` block it is discarded unless it was published."""

    def __init__(self, vault: Path, present: Container[bytes] = frozenset()) -> None:
        """Begin a pack for the repository `vault`, which already has the objects `present`."""
        self._folder = vault / "objects" / "pack"
        self._present = present
        self._places: dict[bytes, tuple[int, int]] = {}
        """For each object id, its offset in the pack and the CRC-32 of its compressed bytes."""
        descriptor, name = tempfile.mkstemp(dir=self._folder, prefix="tmp_pack_")
        self._path = Path(name)
        self._file = os.fdopen(descriptor, "w+b", buffering=_CHUNK_BYTES)
        self._offset = self._file.write(b"PACK" + struct.pack(">II", 2, 0))

    def __enter__(self) -> Self:
        """Return the pack."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Discard the pack unless it was published."""
        self._path.unlink(missing_ok=True)
        with suppress(OSError):  # a full disk has no room for the rest of the buffer
            self._file.close()

    def add(self, kind: ObjectType, content: bytes) -> bytes:
        """Add an object, and return its id.

        Raises:
            SnapshotError: The disk has no room for the object.
        """
        name = object_id(kind, content)
        if not self._has(name):
            packed = _object_header(kind, len(content)) + zlib.compress(content, _COMPRESSION)
            self._places[name] = (self._offset, zlib.crc32(packed))
            self._offset += self._write(packed)
        return name

    def add_stream(self, size: int, read: Callable[[int], bytes]) -> bytes | None:
        """Add a blob of a known size in parts; return its id, or `None` if `read` returns more or fewer bytes.

        Raises:
            OSError: `read` failed.
            SnapshotError: The disk has no room for the object.
        """
        name = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        start, checksum = self._offset, 0
        try:
            for packed in _deflated_blob(size, read, name.update):
                checksum = zlib.crc32(packed, checksum)
                self._offset += self._write(packed)
        except OSError:
            self._forget_from(start)
            raise
        except _OtherSizeError:
            self._forget_from(start)
            return None
        if self._has(name.digest()):
            self._forget_from(start)
        else:
            self._places[name.digest()] = (start, checksum)
        return name.digest()

    def _has(self, name: bytes) -> bool:
        return name in self._places or name in self._present

    def _write(self, content: bytes) -> int:
        try:
            return self._file.write(content)
        except OSError as error:
            raise SnapshotError(f"{self._folder} cannot be written: {error.strerror}.", remedy=_REMEDY) from error

    def _forget_from(self, offset: int) -> None:
        """Delete the bytes from `offset` on."""
        self._file.seek(offset)
        self._file.truncate()
        self._offset = offset

    def publish(self) -> None:
        """Give pack and index their final names; the index is last, because git finds a pack by its index."""
        trailer = self._seal()
        index = self._index(trailer)
        descriptor, name = tempfile.mkstemp(dir=self._folder, prefix="tmp_idx_")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(index)
                file.flush()
                fsync(file.fileno())
                os.fchmod(file.fileno(), 0o444)
            final = self._folder / f"pack-{trailer.hex()}"
            self._path.replace(final.with_suffix(".pack"))
            Path(name).replace(final.with_suffix(".idx"))
        finally:
            Path(name).unlink(missing_ok=True)
        fsync_folder(self._folder)

    def _seal(self) -> bytes:
        """Write the number of objects and the checksum, sync the pack to disk, and return the checksum."""
        self._file.seek(8)
        self._file.write(struct.pack(">I", len(self._places)))
        self._file.seek(0)
        checksum = hashlib.sha1(usedforsecurity=False)
        while piece := self._file.read(_CHUNK_BYTES):
            checksum.update(piece)
        self._file.write(checksum.digest())
        self._file.flush()
        fsync(self._file.fileno())
        os.fchmod(self._file.fileno(), 0o444)
        return checksum.digest()

    def _index(self, trailer: bytes) -> bytes:
        """Return the pack's index, in version 2."""
        names = sorted(self._places)
        counts = [0] * 256
        for name in names:
            counts[name[0]] += 1
        fanout, total = [], 0
        for count in counts:
            total += count
            fanout.append(total)
        large = [offset for name in names if (offset := self._places[name][0]) >= _LARGE_OFFSET]
        seats = {offset: _LARGE_OFFSET | seat for seat, offset in enumerate(large)}
        offsets = [seats.get(offset, offset) for name in names for offset in (self._places[name][0],)]
        body = b"".join(
            (
                b"\377tOc" + struct.pack(">I", 2),
                struct.pack(">256I", *fanout),
                *names,
                struct.pack(f">{len(names)}I", *(self._places[name][1] for name in names)),
                struct.pack(f">{len(names)}I", *offsets),
                struct.pack(f">{len(large)}Q", *large),
                trailer,
            )
        )
        return body + hashlib.sha1(body, usedforsecurity=False).digest()


class _OtherSizeError(Exception):
    """The content is longer or shorter than `size`."""


def _deflated_blob(size: int, read: Callable[[int], bytes], note: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield a blob's compressed bytes in parts; call `note` with each part before its compression."""
    deflate = zlib.compressobj(_COMPRESSION)
    rest_bytes = size
    yield _object_header("blob", size)
    while piece := read(_CHUNK_BYTES):
        rest_bytes -= len(piece)
        if rest_bytes < 0:
            break
        note(piece)
        yield deflate.compress(piece)
    if rest_bytes:
        raise _OtherSizeError
    yield deflate.flush()


def _object_header(kind: ObjectType, size: int) -> bytes:
    """Return an object's header: its type, and its size in groups of four and then seven bits."""
    byte, size = _TYPE_BITS[kind] << 4 | size & 0x0F, size >> 4
    header = bytearray()
    while size:
        header.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    header.append(byte)
    return bytes(header)
