"""Install or print `septet`'s completion script for the shell that called this process."""

from collections.abc import Sequence
from typing import Any

import psutil

from clients.cli.parsing.command_line import app_of
from clients.cli.terminal.output import echo
from septet.errors import UsageError


def give_script(words: Sequence[str]) -> None:
    """Install the completion script if `words` begins with `--install-completion`; else print the script.

    Raises:
        UsageError: None of the calling processes is bash, zsh or fish.
    """
    names = (process.name().lstrip("-") for process in psutil.Process().parents())
    option: dict[str, Any] = {"shell": next((name for name in names if name in {"bash", "zsh", "fish"}), None)}
    if option["shell"] is None:
        message = "No bash, zsh or fish called this command."
        raise UsageError(message, remedy="Run the command in one of these shells.")
    if words[0] == "--install-completion":
        echo(f"Completion is installed in {app_of().install_completion(**option)}.")
    else:
        echo(app_of().generate_completion(**option))
