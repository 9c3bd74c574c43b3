import base64

import pytest

from clients.executions.index import page_token, page_word
from septet.errors import NotFoundError


def test_a_word_gives_back_what_the_server_said() -> None:
    """A page word is plain text that leads back to the server's token; the end of a list has no word."""
    for token in (b"{}", bytes(range(256)), b"\x00"):
        word = page_word(token)
        assert word is not None
        assert word.isascii()
        assert page_token(word) == token
    assert page_word(b"") is None
    assert page_token("") is None


@pytest.mark.parametrize(
    "word", ["x", "no place", "ä", "====", "bm8gc3VjaCBwYWdl", base64.urlsafe_b64encode(bytes(6)).decode()]
)
def test_any_other_word_leads_nowhere(word: str) -> None:
    """A wrong word is refused before it reaches the server, which would report a failure of its own."""
    with pytest.raises(NotFoundError, match="is not the `next` of a list"):
        page_token(word)
