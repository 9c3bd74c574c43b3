"""A command that a repository names, such as a check: run as a guest, and told in words where it failed."""

from typing import Final

from septet.agents.turns.guest_run import GuestCommand, GuestRunner
from septet.system.masking import mask

_OUTPUT_SHOWN: Final = 1200
"""Characters of a failing command's output that are told: its end says most."""


def run_command(guests: GuestRunner, command: GuestCommand, what: str, time: str) -> str:
    """Run a command, confined as agents are, and return why it failed; nothing where it did not.

    Args:
        guests: What runs it.
        command: Its words, never a shell's.
        what: What people call it.
        time: How long it could take, for people.

    Raises:
        HaltedError: The attempt was cancelled; the command was ended.
        AgentCrashedError: Its supervisor was killed.
        OSError: The disk or the machine refused.
    """
    name = f"{what} `{' '.join(command.argv)}`"
    try:
        end = guests.run(command)
    except FileNotFoundError as error:
        return f"{name} could not be started: {error.strerror}."
    cause, why = end.record.cause, end.record.why
    if cause == "not_started":
        return f"{name} could not be started: {why}."
    if cause == "wall_limit":
        return f"{name} took longer than {time}."
    if cause.endswith("_limit"):
        return f"{name} used too much: {why}."
    if end.code != 0 or cause != "exited":
        return f"{name} failed (exit code {end.code}):\n{mask(end.output).strip()[-_OUTPUT_SHOWN:]}"
    return ""
