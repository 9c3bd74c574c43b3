"""Run a repository's own command, such as a check, as a guest, and describe why it failed."""

from typing import Final

from septet.agents.outcomes.endings import PASSING, RESOURCES
from septet.agents.sandbox.guest_run import GuestCommand, GuestEnd, GuestRunner
from septet.errors import AgentCrashedError
from septet.system.masking import mask

_OUTPUT_SHOWN: Final = 1200
"""How many characters are reported from the end of a failed command's output."""


def why_failed(end: GuestEnd, name: str, time: str) -> str:
    """Return why a command failed; empty if it succeeded. `time` is the command's time limit in words.

    Raises:
        AgentCrashedError: The command did not fail by itself: a retry may help.
    """
    cause, why = end.record.cause, end.record.why
    if cause == "not_started" and not why.startswith(PASSING):
        return f"{name} could not be started: {why}."
    if cause in {"wall_limit", "idle_limit"}:
        return f"{name} took longer than {time}."
    if cause in RESOURCES:
        return f"{name} used too much: {why}. {RESOURCES[cause][1]} of the worker sets the limit."
    if cause != "exited":
        message = f"{name} was stopped from outside: {why or cause}."
        raise AgentCrashedError(message, remedy="Septet tries again automatically.", retry_after_seconds=5.0)
    if end.code != 0:
        failed, output = f"{name} failed (exit code {end.code})", mask(end.output).strip()[-_OUTPUT_SHOWN:]
        return f"{failed}:\n{output}" if output else f"{failed}.\nIt printed nothing."
    return ""


def run_command(guests: GuestRunner, command: GuestCommand, what: str, time: str) -> str:
    """Run a command in the sandbox, and return why it failed; empty if it succeeded.

    Args:
        what, time: The kind of command, such as `Check`, and its time limit in words, for the reason.

    Raises:
        HaltedError: The attempt was cancelled; the command was ended.
        AgentCrashedError: The command was ended from outside, or the machine was short of a resource.
        OSError: The disk or the machine refused.
    """
    name = f"{what} `{' '.join(command.argv)}`"
    try:
        end = guests.run(command)
    except FileNotFoundError as error:
        return f"{name} could not be started: {error.strerror}."
    return why_failed(end, name, time)
