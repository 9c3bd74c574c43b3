"""The keys that seal payloads of Temporal, and the seals of sessions."""

import base64
import os
import sys
from pathlib import Path

import pytest
from fakes.sealed import write_keys
from structlog.testing import capture_logs

from septet.contracts.seal import SealedBox
from septet.errors import DamagedSealError, InvalidInputError, UnknownKeyError
from septet.keys.key_ring import (
    KeyRing,
    SealError,
    keys_in_file,
    keys_of_command,
    new_key_line,
    parse_keys,
    seal,
    unseal,
)
from septet.system.masking import mask


def test_what_is_sealed_opens_with_its_key_alone(tmp_path: Path) -> None:
    """Only its own key opens a seal, no seal equals another, and the error names the id of the missing key."""
    ring = keys_in_file(write_keys(tmp_path / "keys", "k1"))
    sealed = ring.seal(b"words", b"payload")
    assert b"words" not in sealed.content
    assert ring.seal(b"words", b"payload").content != sealed.content
    assert ring.open(sealed, b"payload") == b"words"
    for other in ("k1", "k2"):
        with pytest.raises(UnknownKeyError, match="k1"):
            keys_in_file(write_keys(tmp_path / f"of-{other}", other)).open(sealed, b"payload")


@pytest.mark.parametrize("place", [0, 11, 12, -1])
def test_a_changed_byte_opens_nothing(tmp_path: Path, place: int) -> None:
    """A seal with a changed byte, or with another subject, does not open."""
    ring = keys_in_file(write_keys(tmp_path / "keys", "k1"))
    sealed = ring.seal(b"words", b"payload")
    changed = bytearray(sealed.content)
    changed[place] ^= 1
    for other, about in ((bytes(changed), b"payload"), (sealed.content, b"other"), (b"short", b"payload")):
        with pytest.raises(DamagedSealError):
            ring.open(SealedBox(sealed.key_id, sealed.key_check, other), about)


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    """A changed file is read without a restart: its first key seals, and the older key opens older seals."""
    path = write_keys(tmp_path / "keys", "old")
    ring = keys_in_file(path)
    before = ring.seal(b"words")
    draft = path.with_suffix(".draft")
    draft.write_text(f"{new_key_line('new')}\n{path.read_text()}")
    draft.replace(path)
    after = ring.seal(b"words")
    assert (before.key_id, after.key_id) == ("old", "new")
    assert ring.open(before) == ring.open(after) == b"words"


@pytest.mark.parametrize("half", ["", "half", "gone"])
def test_a_source_that_cannot_be_read_is_logged_and_leaves_the_keys(tmp_path: Path, half: str) -> None:
    """The present keys stay while a new file is incomplete, empty or missing, and a log event reports the file."""
    path = write_keys(tmp_path / "keys", "old")
    whole = f"{new_key_line('new')}\n{path.read_text()}"
    ring = keys_in_file(path)
    if half == "gone":
        path.unlink()
    else:
        path.write_text(whole[:20] if half else "")
    with capture_logs() as lines:
        assert {ring.seal(b"words").key_id for _ in range(3)} == {"old"}
    assert [line["event"] for line in lines] == ["seal_keys_not_read"]
    path.write_text(whole)
    assert ring.seal(b"words").key_id == "new"


def test_a_source_that_could_not_be_read_is_looked_at_again(tmp_path: Path) -> None:
    """A source that could not be read is read again after five seconds, even without a new version."""
    old, new = new_key_line("old"), new_key_line("new")
    now, source = [100.0], [old]

    def load() -> str:
        if not source:
            raise InvalidInputError("The disk refuses.")
        return source[0]

    version = [1]
    ring = KeyRing(load, lambda: version[0], lambda: now[0])
    source.clear()
    version[0] = 2
    with capture_logs() as lines:
        ring.seal(b"words")
        source.append(new)
        now[0] += 4.9
        assert ring.seal(b"words").key_id == "old"
        now[0] += 0.2
        assert ring.seal(b"words").key_id == "new"
    assert [line["error"] for line in lines] == ["The disk refuses."]


def test_a_command_gives_the_keys_and_no_shell_runs_it(tmp_path: Path) -> None:
    """The command's words are split without a shell, and its failure has the exit code and the last words."""
    keys = write_keys(tmp_path / "my keys", "k1")
    ring = keys_of_command(f"{sys.executable} -c \"print(open('{keys}').read())\"", dict(os.environ))
    assert ring.seal(b"words").key_id == "k1"
    with pytest.raises(InvalidInputError, match=r"exit code 3: no vault"):
        keys_of_command(f"{sys.executable} -c \"import sys; sys.stderr.write('no vault'); sys.exit(3)\"", {})
    with pytest.raises(InvalidInputError, match="cannot run"):
        keys_of_command("/no/such/program", {})


@pytest.mark.parametrize("line", ["k1", "k1 c2hvcnQ=", "k/1 " + base64.b64encode(b"x" * 32).decode(), "k1 ***"])
def test_a_line_that_is_no_key_is_named_by_its_number(line: str) -> None:
    """The error names the line's number and the right form, and not the line's content."""
    with pytest.raises(InvalidInputError) as refused:
        parse_keys(f"# keys\n\n{line}\n")
    assert "Line 3" in refused.value.message
    assert line.partition(" ")[2] not in refused.value.message or not line.partition(" ")[2]
    assert "base64" in refused.value.remedy


def test_a_file_without_keys_or_with_one_id_twice_is_refused(tmp_path: Path) -> None:
    """A file without a key, with a repeated id or without permission to read is refused."""
    with pytest.raises(InvalidInputError, match="no key"):
        parse_keys("# nothing\n")
    with pytest.raises(InvalidInputError, match="repeats the id k1"):
        parse_keys(f"{new_key_line('k1')}\n{new_key_line('k1')}\n")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        keys_in_file(tmp_path / "none")


def test_keys_are_masked_wherever_words_are() -> None:
    """A key in a log or an answer appears as `***`."""
    line = new_key_line("k1")
    parse_keys(line)
    assert mask(f"it is {line}") == "it is k1 ***"


def test_what_is_sealed_comes_back_under_the_same_key_and_name() -> None:
    """A seal returns its bytes, contains neither the bytes nor the name in clear, and differs from each other seal."""
    content = b"a conversation\0 of an agent" * 100
    sealed = seal("a passphrase", content, "wo-1")
    assert seal("a passphrase", content, "wo-1") != sealed
    assert unseal("a passphrase", sealed, "wo-1") == content
    assert b"conversation" not in sealed
    assert b"wo-1" not in sealed


SEALED = seal("key", b"content", "wo-1")
CHANGED = bytes([SEALED[0], SEALED[1] ^ 1]) + SEALED[2:]


@pytest.mark.parametrize(
    ("key", "sealed", "about"),
    [
        ("other", SEALED, "wo-1"),
        ("key", SEALED, "wo-2"),
        ("key", CHANGED, "wo-1"),
        ("key", SEALED[:-30] + bytes(30), "wo-1"),
        ("key", b"", "wo-1"),
        ("key", b"short", "wo-1"),
        ("key", b"x" * 200, "wo-1"),
    ],
    ids=["key", "name", "first bytes", "last bytes", "empty", "short", "never sealed"],
)
def test_what_is_not_sealed_by_this_key_under_this_name_is_refused(key: str, sealed: bytes, about: str) -> None:
    """A seal with another key, another name or a changed byte, and bytes that are no seal, are refused."""
    with pytest.raises(SealError):
        unseal(key, sealed, about)
