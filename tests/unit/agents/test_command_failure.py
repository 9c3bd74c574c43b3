"""Why a check or a set-up command failed: only its own failures count against it."""

import pytest

from activities.host.repository_commands import why_failed
from septet.agents.outcomes.endings import RESOURCES
from septet.agents.outcomes.outcome import Cause, ExitRecord
from septet.agents.sandbox.guest_run import GuestEnd
from septet.errors import AgentCrashedError


def told(cause: Cause, why: str = "", *, code: int | None = 0, signal: int | None = None, output: str = "") -> str:
    """Return the message about a check that ended so."""
    return why_failed(GuestEnd(ExitRecord(cause, why, code, signal), output), "Check `make`", "60 s")


@pytest.mark.parametrize(("cause", "setting"), [(cause, setting) for cause, (_, setting) in RESOURCES.items()])
def test_a_limit_is_told_with_the_setting_that_moves_it(cause: Cause, setting: str) -> None:
    """The message about a reached limit names the setting of the worker that sets the limit."""
    assert told(cause, "limit of 3 reached", code=None, signal=9) == (
        f"Check `make` used too much: limit of 3 reached. {setting} of the worker sets the limit."
    )


@pytest.mark.parametrize("cause", ["wall_limit", "idle_limit"])
def test_silence_for_all_its_time_is_time(cause: Cause) -> None:
    """For a command, the idle limit and the wall limit are one time limit."""
    assert told(cause, code=None, signal=15) == "Check `make` took longer than 60 s."


@pytest.mark.parametrize(
    ("cause", "why"),
    [
        ("ended", "proxy_lost"),
        ("terminated", ""),
        ("not_started", "EAGAIN: no process left"),
        ("not_started", "ENOMEM: no memory left"),
    ],
)
@pytest.mark.parametrize("code", [0, 1, None])
def test_what_others_ended_is_tried_again(cause: Cause, why: str, code: int | None) -> None:
    """A lost proxy, a stopped runner or a machine without resources fails no check; the check may be retried."""
    with pytest.raises(AgentCrashedError) as raised:
        told(cause, why, code=code)
    assert raised.value.retryable
    assert (why or cause) in raised.value.message


def test_its_own_end_is_its_own() -> None:
    """A check fails by its exit code, by a signal, or because its program does not exist."""
    assert told("exited") == ""
    assert told("exited", code=2, output="no rule\n") == "Check `make` failed (exit code 2):\nno rule"
    assert told("exited", code=1, output=" \n") == "Check `make` failed (exit code 1).\nIt printed nothing."
    assert told("exited", code=None, signal=9).startswith("Check `make` failed (exit code -9)")
    assert "could not be started: ENOENT" in told("not_started", "ENOENT: no such file", code=None)
