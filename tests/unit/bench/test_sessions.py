"""The bench's comparison of shared sessions with separate sessions."""

from typing import Any

import pytest

from bench.sessions import figures_of


def cost(**facts: Any) -> dict[str, Any]:
    """Return the costs of a work order."""
    return {"requests": 9, "sent_bytes": 300, "cached_bytes": 100, "seconds": 2.0, "outputs": ["/bug"], **facts}


def test_a_longer_conversation_that_a_cache_serves_misses_no_target() -> None:
    """Shared sessions may send more bytes in all, but not more requests, nor more bytes outside the cache."""
    shared = [cost(sent_bytes=400, cached_bytes=300)]
    figures = figures_of("claude", {"shared": shared, "separate": [cost()]})
    assert [figure.passed for figure in figures] == [True, None, True, True, True]
    assert [figure.ratio for figure in figures[:-1]] == pytest.approx([1.0, 4 / 3, 0.5, 1.0])
    dearer = figures_of("claude", {"shared": [cost(requests=10, cached_bytes=0)], "separate": [cost()]})
    assert [figure.passed for figure in dearer] == [False, None, False, True, True]


def test_the_time_has_a_target_where_one_process_takes_many_turns() -> None:
    """Only claude's time has a target, because codex starts for each turn either way."""
    slower = {"shared": [cost(seconds=2.1)], "separate": [cost()]}
    assert [figures_of(agent, slower)[3].passed for agent in ("claude", "codex")] == [False, None]


def test_other_answers_miss_the_target() -> None:
    """The steps must have the same answers with shared and separate sessions."""
    other = figures_of("codex", {"shared": [cost(outputs=["/chore"]), cost()], "separate": [cost(), cost()]})
    assert [figure.passed for figure in other] == [True, None, True, None, False]
    assert other[-1].value == 1
