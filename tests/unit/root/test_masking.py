"""The exact values of keys, wherever something leaves the process."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.system.masking import MASK, hide, mask, mask_bytes, mask_json, reveal
from septet.system.preview import scrub

KEY = 'a "key"/of+the worker?'


@pytest.fixture(autouse=True)
def _hidden() -> Iterator[None]:
    hide([KEY, "short", "a-key-that-is-long", "a-key-that-is-longer"])
    yield
    reveal([KEY, "a-key-that-is-long", "a-key-that-is-longer"])


@pytest.mark.parametrize(
    "encode",
    [
        str,
        lambda key: json.dumps(key)[1:-1],
        lambda key: quote(key, safe=""),
        lambda key: key.encode().hex(),
        lambda key: b64encode(key.encode()).decode(),
        lambda key: urlsafe_b64encode(key.encode()).decode().rstrip("="),
    ],
)
def test_a_key_is_masked_in_its_common_encodings(encode: Callable[[str], str]) -> None:
    """As it stands, and as JSON, a URL, hexadecimal digits or base64 have it."""
    masked = mask(f"it is {encode(KEY)}, he said")
    assert MASK in masked
    assert encode(KEY)[4:-4] not in masked


@given(before=st.binary(max_size=20), after=st.binary(max_size=20))
def test_base64_is_masked_at_any_place(before: bytes, after: bytes) -> None:
    """A key in the middle of something that was encoded as a whole, as in basic authentication, is masked too."""
    hide([KEY])
    encoded = b64encode(before + KEY.encode() + after).decode()
    assert MASK in mask(encoded)


def test_the_longest_goes_first() -> None:
    """A key that begins another one leaves no rest of it."""
    assert mask("a-key-that-is-longer a-key-that-is-long") == "*** ***"


def test_short_values_are_words() -> None:
    """What has less than eight characters stays."""
    assert mask("a short word") == "a short word"


def test_json_stays_json() -> None:
    """In a document strings and names are masked, and nothing else changes."""
    hide(["12345678"])
    document = {"n": 12345678, KEY: [f"x{KEY}", "12345678", None]}
    masked = json.loads(mask_json(json.dumps(document).encode()))
    reveal(["12345678"])
    assert masked == {"n": 12345678, MASK: [f"x{MASK}", MASK, None]}
    assert mask_json(b'{"a": 1}') == b'{"a": 1}'


def test_bytes_and_what_people_are_shown_are_masked() -> None:
    """Streams as agents print them, and the texts of logs, plans and differences."""
    assert mask_bytes(b"\xff a-key-that-is-long \xff") == b"\xff *** \xff"
    assert scrub("a-key-that-is-long") == MASK
