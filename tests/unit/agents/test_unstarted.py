"""A host on which supervisors do not come up."""

from dataclasses import replace

import pytest
from fakes.agent_lab import Lab

from septet.agents.supervisors import Supervisors
from septet.errors import AgentCrashedError


async def test_supervisors_that_end_at_once_are_not_started_for_ever(lab: Lab) -> None:
    """After a few the attempt ends, with an error that is tried again later: a host out of order fills no disk."""
    python = lab.root / "no-python"
    python.write_text("#!/bin/sh\nhead -c 1 > /dev/null\n", encoding="utf-8")
    python.chmod(0o755)
    supervisors = Supervisors(python=str(python))
    lab.agent("init()\nresult('/bug')\n")
    lab.means = replace(lab.means, supervisors=supervisors)
    try:
        with pytest.raises(AgentCrashedError, match="before it started the agent, 3 times") as caught:
            await lab.carry_out()
    finally:
        supervisors.close()
    assert (caught.value.retryable, caught.value.retry_after_seconds) == (True, 30.0)
    assert len(lab.means.runs.of("wo-1")) == 3
    assert lab.journal == []
