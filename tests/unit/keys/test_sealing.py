import pytest

from septet.keys.key_ring import SealError, seal, unseal


def test_what_is_sealed_comes_back_under_the_same_key_and_name() -> None:
    """A seal returns its bytes, and contains neither the bytes nor the name in clear."""
    content = b"a conversation\0 of an agent" * 100
    sealed = seal("a passphrase", content, "wo-1")
    assert unseal("a passphrase", sealed, "wo-1") == content
    assert b"conversation" not in sealed
    assert b"wo-1" not in sealed


def test_the_same_bytes_are_never_sealed_alike() -> None:
    """Two seals of the same bytes are different, so that equal sessions are not recognisable."""
    assert seal("key", b"content", "wo-1") != seal("key", b"content", "wo-1")


@pytest.mark.parametrize(
    ("key", "about", "change"),
    [("other", "wo-1", 0), ("key", "wo-2", 0), ("key", "wo-1", 1), ("key", "wo-1", -30)],
)
def test_another_key_another_name_and_changed_bytes_are_refused(key: str, about: str, change: int) -> None:
    """A seal with another key, another name or a changed byte is refused."""
    sealed = bytearray(seal("key", b"content", "wo-1"))
    if change:
        sealed[change] ^= 1
    with pytest.raises(SealError):
        unseal(key, bytes(sealed), about)


def test_bytes_that_were_never_sealed_are_refused() -> None:
    """Bytes that are no seal are refused with the same error."""
    for nonsense in (b"", b"short", b"x" * 200):
        with pytest.raises(SealError):
            unseal("key", nonsense, "wo-1")
