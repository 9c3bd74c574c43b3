"""Run a command that a repository names, such as a check, as a guest, and report its failure in words."""

from septet.agents.sandbox.command_failure import why_failed
from septet.agents.sandbox.guest_run import GuestCommand, GuestRunner


def run_command(guests: GuestRunner, command: GuestCommand, what: str, time: str) -> str:
    """Run a command, confined as agents are, and return why it failed; empty if it did not fail.

    Args:
        guests: The runner of the command.
        command: The command as argv, never a shell's line.
        what: The command's name for people.
        time: The command's time limit, for people.

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
