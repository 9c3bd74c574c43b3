"""Why a check or a set-up command failed: only what was its own doing is laid at its door."""

import pytest

from activities.host.repository_commands import why_failed
from septet.agents.outcomes.endings import RESOURCES
from septet.agents.outcomes.outcome import Cause, ExitRecord
from septet.agents.sandbox.guest_run import GuestEnd
from septet.errors import AgentCrashedError


def told(cause: Cause, why: str = "", *, code: int | None = 0, signal: int | None = None, output: str = "") -> str:
    """Return what is told of a check that ended so."""
    return why_failed(GuestEnd(ExitRecord(cause, why, code, signal), output), "Check `make`", "60 s")


@pytest.mark.parametrize(("cause", "setting"), [(cause, setting) for cause, (_, setting) in RESOURCES.items()])
def test_a_limit_is_told_with_the_setting_that_moves_it(cause: Cause, setting: str) -> None:
    """As for agents."""
    assert told(cause, "limit of 3 reached", code=None, signal=9) == (
        f"Check `make` used too much: limit of 3 reached. {setting} of the worker sets the limit."
    )


@pytest.mark.parametrize("cause", ["wall_limit", "idle_limit"])
def test_silence_for_all_its_time_is_time(cause: Cause) -> None:
    """Both limits of a command are the same one."""
    assert told(cause, code=None, signal=15) == "Check `make` took longer than 60 s."


@pytest.mark.parametrize(
    ("cause", "why"),
    [
        ("ended", "proxy_lost"),
        ("terminated", ""),
        ("orphan_limit", ""),
        ("lost", ""),
        ("not_started", "EAGAIN: no process left"),
        ("not_started", "ENOMEM: no memory left"),
    ],
)
@pytest.mark.parametrize("code", [0, 1, None])
def test_what_others_ended_is_tried_again(cause: Cause, why: str, code: int | None) -> None:
    """A proxy that was lost, a runner that stops and a machine that is short of something are no failed check."""
    with pytest.raises(AgentCrashedError) as raised:
        told(cause, why, code=code)
    assert raised.value.retryable
    assert (why or cause) in raised.value.message


def test_its_own_end_is_its_own() -> None:
    """A code, a signal, or a program that is not there."""
    assert told("exited") == ""
    assert told("exited", code=2, output="no rule\n") == "Check `make` failed (exit code 2):\nno rule"
    assert told("exited", code=1, output=" \n") == "Check `make` failed (exit code 1).\nIt printed nothing."
    assert told("exited", code=None, signal=9).startswith("Check `make` failed (exit code -9)")
    assert "could not be started: ENOENT" in told("not_started", "ENOENT: no such file", code=None)
