"""A worker that starts writes back logins that were in use when the last worker died."""

import json
from pathlib import Path

from fakes.logins import HOUR, log_in, login
from fakes.step_lab import settings_of

from septet.agents.clis.registry import adapter_for
from septet.state import StateDir
from workers.registry import parts_of


async def test_a_worker_that_starts_writes_back_what_an_agent_has_refreshed(tmp_path: Path) -> None:
    """The refreshed login is in the user's file as soon as the worker has started, without a start of the agent."""
    settings = settings_of(tmp_path)
    users = log_in(settings.home, "claude", login("claude", 1))
    async with parts_of(settings) as parts:
        host = parts.host
        home = host.homes.of("wo-1", adapter_for("claude"), host.agents)
        home.prepare(None, HOUR)
    copy = StateDir(settings.state_dir).homes / "wo-1/claude/.claude/.credentials.json"
    copy.write_text(json.dumps(login("claude", 2, 9 * HOUR)))
    async with parts_of(settings):
        assert "refresh-ann-2" in users.read_text()
