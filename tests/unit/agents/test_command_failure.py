"""Why a check or a set-up command failed: only its own failures count against it."""

import pytest

from activities.host.repository_commands import why_failed
from septet.agents.outcomes.outcome import Cause, ExitRecord
from septet.agents.sandbox.guest_run import GuestEnd
from septet.errors import AgentCrashedError


def told(cause: Cause, why: str = "", *, code: int | None = 0, signal: int | None = None, output: str = "") -> str:
    return why_failed(GuestEnd(ExitRecord(cause, why, code, signal), output), "Check `make`", "60 s")


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
