"""Install or print the completion script of `septet` for the shell that called this process."""

from collections.abc import Sequence
from typing import Any

import psutil

from clients.cli.parsing.command_line import app_of
from clients.cli.terminal.output import echo
from septet.errors import UsageError


def give_script(words: Sequence[str]) -> None:
    """Install the script, or print it."""
    if words[0] == "--install-completion":
        echo(f"Completion is installed in {app_of().install_completion(**_shell_option())}.")
    else:
        echo(app_of().generate_completion(**_shell_option()))


def _shell_option() -> dict[str, Any]:
    """Return the shell that called this process, as the parser's option `shell`."""
    for process in psutil.Process().parents():
        name = process.name().lstrip("-")
        if name in {"bash", "zsh", "fish"}:
            return {"shell": name}
    raise UsageError("No bash, zsh or fish called this command.", remedy="Run the command in one of these shells.")
