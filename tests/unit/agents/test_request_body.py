"""A guest's connection carries one request; later bytes pass only after an upgrade to a web socket."""

import pytest

from septet.agents.proxy.request import RequestBody, RequestHead

BEHIND = b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n"


def body_of(*fields: str) -> RequestBody:
    return RequestBody(RequestHead("\r\n".join(("POST /v1 HTTP/1.1", *fields)).encode()))


def taken(body: RequestBody, data: bytes, parts_of: int) -> tuple[bytes, bool]:
    """Return the bytes that pass if the data comes in parts, and whether more bytes followed."""
    passed, is_more = b"", False
    for start in range(0, len(data), parts_of):
        part, is_more = body.take(data[start : start + parts_of])
        passed += part
    return passed, is_more


@pytest.mark.parametrize("parts_of", [1, 3, 4096])
@pytest.mark.parametrize(
    ("field", "sent", "passed"),
    [
        ("A: b", b"", b""),
        ("Content-Length: 5", b"hello", b"hello"),
        ("Transfer-Encoding: Chunked", b"0\r\n\r\n", b"0\r\n\r\n"),
        ("Transfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
        (
            "Transfer-Encoding: chunked",
            b"00A;x=y\r\n\r\n34567890\r\n0\r\nA: b\r\n\r\n",
            b"a\r\n\r\n34567890\r\n0\r\n\r\n",
        ),
    ],
)
def test_a_body_passes_and_nothing_behind_it(field: str, sent: bytes, passed: bytes, parts_of: int) -> None:
    """The body passes in parts of any size; chunks lose their extensions and trailers."""
    assert taken(body_of(field), sent, parts_of) == (passed, False)
    assert taken(body_of(field), sent + BEHIND, parts_of) == (passed, True)


@pytest.mark.parametrize(
    "fields",
    [
        ("Content-Length: 1", "Transfer-Encoding: chunked"),
        ("Content-Length: 1", "content-length: 1"),
        ("Content-Length: +1",),
        ("Content-Length: 1, 1",),
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
    ],
)
def test_a_length_that_servers_could_read_in_two_ways_is_refused(fields: tuple[str, ...]) -> None:
    """Two lengths, a sign or another coding is refused: servers would disagree on where the body ends."""
    with pytest.raises(ValueError, match="not clear"):
        body_of(*fields)


@pytest.mark.parametrize(
    "sent",
    [
        b"5\r\nhelloGET",
        b"5\r\nhello!\r\n",
        b"-1\r\n",
        b"0x5\r\n",
        b"5\nhello\r\n",
        b"5" * 20_000,
    ],
)
def test_what_are_no_chunks_ends_the_request(sent: bytes) -> None:
    """A chunk that is longer than its size, or whose size is no number, ends the request."""
    with pytest.raises(ValueError, match=r"chunk"):
        taken(body_of("Transfer-Encoding: chunked"), sent + b"\r\n", 4096)


@pytest.mark.parametrize("parts_of", [1, 4096])
def test_a_web_socket_that_the_host_opens_carries_what_it_carries(parts_of: int) -> None:
    """Bytes pass after the host has switched to the web socket, and not before."""
    body = body_of("Upgrade: WebSocket")
    assert body.take(b"frame") == (b"", True)
    answer = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
    for start in range(0, len(answer), parts_of):
        body.hear(answer[start : start + parts_of])
    assert body.take(b"frame") == (b"frame", False)


@pytest.mark.parametrize(
    ("field", "answer"),
    [
        ("Upgrade: websocket", b"HTTP/1.1 426 Upgrade Required\r\n\r\n"),
        ("Upgrade: websocket", b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 101 "),
        ("Upgrade: h2c", b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        ("A: b", b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    ],
)
def test_no_other_answer_lets_a_second_request_through(field: str, answer: bytes) -> None:
    """No other status and no other protocol lets a second request pass, in which a host could be named."""
    body = body_of(field)
    body.hear(answer)
    assert body.take(BEHIND) == (b"", True)
