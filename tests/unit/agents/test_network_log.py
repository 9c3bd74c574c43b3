"""The log of a guest's network stays small and complete, however many requests the guest sends."""

import json
from pathlib import Path

import pytest

from septet.agents.proxy.network_log import (
    MOST_BYTES,
    NETWORK_LOG,
    REFUSED_BYTES,
    AskedHost,
    NetworkLog,
    open_log,
)
from septet.agents.runs.folders import Run
from septet.agents.runs.logs import network_lines, refused_hosts

WHY = "not in the list of hosts"


@pytest.fixture
def log(tmp_path: Path) -> NetworkLog:
    return NetworkLog(open_log(str(tmp_path)))


@pytest.mark.parametrize("names", [1, 7, 20_000])
@pytest.mark.parametrize("request_of", ["", "GET /v1/files"])
def test_refusals_push_out_nothing_that_was_let_through(
    log: NetworkLog, tmp_path: Path, names: int, request_of: str
) -> None:
    """Many refusals leave room for the allowed connections, and each refusal counts in the end."""
    for number in range(20_000):
        log.note(AskedHost(f"{number % names}.{'n' * 200}.example", 443, WHY, request_of))
    before = sum(line.count for line in network_lines(Run(tmp_path, None)))
    assert before > 10_000, "a killed proxy loses few"
    asked = AskedHost("api.example", 443)
    assert log.begin(asked)
    assert list(network_lines(Run(tmp_path, None)))[-1].host == "api.example", "from its beginning"
    log.note(asked, sent_bytes=9, tokens=(5, 6))
    log.flush()
    lines = list(network_lines(Run(tmp_path, None)))
    (allowed,) = (line for line in lines if line.allowed)
    assert (allowed.sent_bytes, allowed.input_tokens, allowed.output_tokens) == (9, 5, 6)
    assert sum(line.count for line in lines if not line.allowed) == 20_000
    assert (tmp_path / NETWORK_LOG).stat().st_size < 8 * REFUSED_BYTES
    assert bool(refused_hosts(Run(tmp_path, None))) == (not request_of)


def test_a_host_that_never_answers_is_counted_too(log: NetworkLog, tmp_path: Path) -> None:
    """An allowed host that never answers is counted, and takes little room in the log."""
    for _ in range(20_000):
        log.note(AskedHost("api.example", 443))
    log.flush()
    assert sum(line.count for line in network_lines(Run(tmp_path, None)) if line.allowed) == 20_000
    assert (tmp_path / NETWORK_LOG).stat().st_size < 2 * REFUSED_BYTES


def test_nothing_is_let_through_that_the_log_has_no_room_for(log: NetworkLog, tmp_path: Path) -> None:
    """Once the log is full, further connections are refused, also by a proxy that replaces the first."""
    allowed = 0
    while log.begin(asked := AskedHost("n" * 300, 443, request=f"GET /{'x' * 290}")):
        allowed += 1
        log.note(asked)
    content = (tmp_path / NETWORK_LOG).read_bytes().splitlines()
    assert len({json.loads(line)["id"] for line in content}) == allowed
    assert len(list(network_lines(Run(tmp_path, None)))) == allowed
    assert (tmp_path / NETWORK_LOG).stat().st_size < 2 * MOST_BYTES
    assert not NetworkLog(open_log(str(tmp_path))).begin(AskedHost("x", 1)), "nor by a proxy that replaces it"


def test_a_connection_that_outlives_its_turn_has_its_end_in_the_next_log(log: NetworkLog, tmp_path: Path) -> None:
    """The first turn's log has the connection's start, and the next turn's log its end, with the same id."""
    (tmp_path / "next").mkdir()
    asked = AskedHost("api.example", 443)
    log.begin(asked)
    log.change(open_log(str(tmp_path / "next")))
    log.note(asked, received_bytes=7)
    (first,), (then,) = (list(network_lines(Run(folder, None))) for folder in (tmp_path, tmp_path / "next"))
    assert (first.id, first.host, first.received_bytes) == (then.id, "api.example", 0)
    assert then.received_bytes == 7
