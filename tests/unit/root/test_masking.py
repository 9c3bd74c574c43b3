"""The masks of keys in all output of the process."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from septet.system.masking import MASK, hidden_values, hide, hide_of, mask, mask_bytes, mask_json, reveal, scrub
from workers.connection.data_converter import MaskingPayloadConverter

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
    """A key is masked raw, in JSON, in a URL, in hexadecimal digits and in base64."""
    masked = mask(f"it is {encode(KEY)}, he said")
    assert MASK in masked
    assert encode(KEY)[4:-4] not in masked


LONG = "sk-ant-" + "".join(chr(ord("A") + number % 26) + str(number % 10) for number in range(51))[:101]
"""A key as long as Anthropic's keys: longer than a line of base64."""


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\\n", "\n    "], ids=["unix", "mime", "json", "indented"])
@pytest.mark.parametrize("columns", [60, 64, 76])
@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode, lambda content: content.hex().encode()])
def test_a_key_is_masked_where_its_encoding_is_broken_into_lines(
    encode: Callable[[bytes], bytes], columns: int, line_end: str
) -> None:
    """A key is masked in an encoding that is broken into lines, wherever the key begins."""
    for key in (LONG, LONG[:40], LONG[:12]):
        hide([key])
        for before in range(columns):
            encoded = encode(f"{'x' * before}{key} and more".encode()).decode()
            lines = [encoded[at : at + columns] for at in range(0, len(encoded), columns)]
            text = line_end.join(lines)
            masked = mask(text)
            assert masked == mask_bytes(text.encode()).decode()
            assert masked.count(MASK) == 1
            assert len("".join(masked.split(line_end))) <= len(encoded) - len(key) * 4 / 3 + 8
        reveal([key])


def test_what_only_begins_like_a_key_stays() -> None:
    """Half of an encoded key, and two halves with other text between them, are not masked."""
    hide([LONG])
    encoded = b64encode(LONG.encode()).decode()
    text = f"{encoded[:76]}\n{encoded[:76]}-{encoded[76:]}"
    assert mask(text) == text
    reveal([LONG])


def test_the_longest_goes_first() -> None:
    """A key that begins another key leaves no part of the other key."""
    assert mask("a-key-that-is-longer a-key-that-is-long") == "*** ***"


def test_short_values_are_words() -> None:
    """A value of less than eight characters is not masked."""
    assert mask("a short word") == "a short word"


def test_json_stays_json() -> None:
    """A JSON document keeps its form, and only its strings and names are masked."""
    hide(["12345678"])
    document = {"n": 12345678, KEY: [f"x{KEY}", "12345678", None]}
    masked = json.loads(mask_json(json.dumps(document).encode()))
    reveal(["12345678"])
    assert masked == {"n": 12345678, MASK: [f"x{MASK}", MASK, None]}
    assert mask_json(b'{"a": 1}') == b'{"a": 1}'


@pytest.mark.parametrize("inner_ascii", [True, False])
@pytest.mark.parametrize("outer_ascii", [True, False])
@pytest.mark.parametrize(
    "key",
    [
        'pa"ss\\w0rd-long',
        "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----\n",
        'pässword-"löng"',
        KEY,
    ],
    ids=["quotes", "pem", "umlauts", "spaces"],
)
def test_a_key_is_masked_in_json_that_a_text_quotes(key: str, *, inner_ascii: bool, outer_ascii: bool) -> None:
    """A key is masked in JSON that a text of JSON quotes, even two levels deep."""
    hide([key])
    quoted = json.dumps({"password": key}, ensure_ascii=inner_ascii)
    document = json.dumps({"text": quoted}, ensure_ascii=outer_ascii).encode()
    for masked in (mask_json(document), mask_bytes(document)):
        assert json.loads(json.loads(masked)["text"]) == {"password": MASK}
    twice = json.dumps({"event": document.decode()}, ensure_ascii=outer_ascii).encode()
    masked_twice = json.loads(json.loads(mask_json(twice))["event"])
    assert json.loads(masked_twice["text"]) == {"password": MASK}
    (payload,) = MaskingPayloadConverter().to_payloads([f"I saw {quoted}"])
    assert json.loads(payload.data) == f'I saw {{"password": "{MASK}"}}'
    reveal([key])


def test_bytes_and_what_people_are_shown_are_masked() -> None:
    """Masks cover bytes of streams and texts for people."""
    assert mask_bytes(b"\xff a-key-that-is-long \xff") == b"\xff *** \xff"
    assert scrub("a-key-that-is-long") == MASK


def test_what_a_source_has_now_is_masked_and_what_it_had_long_before_no_more() -> None:
    """Of a source's values the last few are masked, so that a login that is refreshed for years stays cheap."""
    lasting = hidden_values()
    for number in range(100):
        hide_of("a-login", [f"token-number-{number}"])
        hide_of("a-login", [f"token-number-{number}"])
    hide_of("another", ["token-number-0"])
    assert mask("token-number-99 token-number-96") == f"{MASK} {MASK}"
    assert mask("token-number-95 token-number-0 short") == f"token-number-95 {MASK} short"
    assert len(hidden_values() - lasting) == 5
