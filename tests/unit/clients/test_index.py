import base64

import pytest

from clients.executions.index import page_token, page_word
from septet.errors import NotFoundError


def test_a_word_gives_back_what_the_server_said() -> None:
    """Whatever bytes the server's token has, the word is plain text and leads back to them; nothing ends the list."""
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
    """What is no word of ours never reaches the server, which would take it for a failure of its own."""
    with pytest.raises(NotFoundError, match="is not the `next` of a list"):
        page_token(word)
