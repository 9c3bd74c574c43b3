"""How the chaos program sees that a new worker has attached to a living agent."""

import asyncio

import pytest
from fakes.agent_lab import Lab, agent_of, dropped

from bench.chaos.adoptions import Followed, attached_at
from bench.chaos.journal import Life
from bench.chaos.processes import Pid

pytestmark = pytest.mark.law


async def test_an_attempt_that_attaches_is_seen_by_its_connection(lab: Lab) -> None:
    """An adoption is a new connection to a living agent's supervisor; a closed connection is no adoption."""
    lab.agent("init(); turn('m1'); wait_for('../go'); result('done')")
    attempt = asyncio.ensure_future(lab.run_turn())
    life = Life("wo-1", "a", pid=Pid.of(agent_of(await lab.said("assistant"))))
    followed = Followed.now(life)
    assert len(followed.sockets) > 1
    await dropped(attempt)
    assert not followed.attached_again
    attempt = asyncio.ensure_future(lab.run_turn())
    assert await attached_at(followed, attempt.done) is not None
    lab.let_go()
    await attempt
    assert await attached_at(Followed.now(life), lambda: False) is None
