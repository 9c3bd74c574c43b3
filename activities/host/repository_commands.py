"""A command that a repository names, such as a check: run as a guest, and told in words where it failed."""

from septet.agents.sandbox.command_failure import why_failed
from septet.agents.sandbox.guest_run import GuestCommand, GuestRunner


def run_command(guests: GuestRunner, command: GuestCommand, what: str, time: str) -> str:
    """Run a command, confined as agents are, and return why it failed; nothing where it did not.

    Args:
        guests: What runs it.
        command: Its words, never a shell's.
        what: What people call it.
        time: How long it could take, for people.

    Raises:
        HaltedError: The attempt was cancelled; the command was ended.
        AgentCrashedError: It was ended from outside, or the machine was short of something.
        OSError: The disk or the machine refused.
    """
    name = f"{what} `{' '.join(command.argv)}`"
    try:
        end = guests.run(command)
    except FileNotFoundError as error:
        return f"{name} could not be started: {error.strerror}."
    return why_failed(end, name, time)
