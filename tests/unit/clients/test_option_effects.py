"""Each option of a command that calls the server has an effect on the request."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from clients.cli.commands import load
from clients.cli.options import Server
from clients.cli.parsing.command_line import parse

PLAN: Final = "0" * 64
LINES: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("--repo", "/app.git", "--title", "T"), "create": ("--repo", "/app.git", "--title", "T"),
    "board": (), "list": (), "costs": (), "move": ("wo-1", "triaged"), "approve": ("wo-1",), "reject": ("wo-1", "--feedback", "No."),
    "cancel": ("wo-1",), "budget set": ("wo-1", "5usd"), "budget raise": ("wo-1", "5usd"), "retry": ("wo-1",), "pipeline": ("--repo", "/app.git", "--issues", "7"), "pipeline list": (), "budget list": (),
    "pipeline pause": ("pl-1",), "pipeline resume": ("pl-1",), "pipeline stop": ("pl-1",),
    "pipeline cancel": ("pl-1",), "pipeline skip": ("pl-1", "7"), "pipeline replan": ("pl-1", "7"),
}  # fmt: skip
"""A command line of each command that calls the server, without the options below."""
ASKED: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "--id": ("mine", ("run", "create")),
    "--again": ("", ("run", "create")),
    "--why": ("because", tuple(name for name in LINES if name.rpartition(" ")[2] in {
        "move", "approve", "reject", "cancel", "retry", "pause", "resume", "stop", "skip", "replan"})),
    "--feedback": ("Better.", ("move", "reject", "retry")),
    "--step": ("build_plan", ("budget set", "budget raise")),
    "--expected": ("5usd", ("budget raise",)),
    "--plan": (PLAN, ("approve", "reject")),
    "--finding": ("0" * 12, ("approve",)),
    "--from": ("build_plan", ("retry",)),
    "--project": ("o/r", ("board", "costs")),
    "--after": ("there", ("board", "list", "pipeline list", "budget list")),
    "--limit": ("3", ("board", "list", "pipeline list", "budget list")),
    "--state": ("open", ("list",)),
    "--agent": ("codex", ("list",)),
    "--repo": ("o/r", ("list",)),
    "--all": ("", ("board",)),
    "--by": ("week", ("costs",)),
    "--since": ("4w", ("costs",)),
}  # fmt: skip
"""A value of each option, and the commands whose request it changes."""


class AskedError(Exception):
    """The server got a request."""


class Question:
    """Operations that raise the first request with its arguments."""

    def __init__(self, *names: str) -> None:
        """Begin, or continue, with the names that lead to the request."""
        self._names = names

    def __getattr__(self, name: str) -> "Question":
        """Return the attribute of the next name."""
        return Question(*self._names, name)

    async def __call__(self, *values: object, **named: object) -> object:
        """Raise the request.

        Raises:
            AskedError: Always.
        """
        raise AskedError(self._names, values, named)


class AskedServer(Server):
    """A server that raises its first request."""

    async def connect(self) -> Any:
        """Return operations that raise the request."""
        return Question()


async def question(command: str, *words: str) -> object:
    """Return the first request that a command line sends to the server."""
    row, given = parse((*command.split(), *words))
    try:
        await load(row.place)(replace(given, server=AskedServer(address="elsewhere:7233")))
    except AskedError as asked:
        return asked.args
    raise AssertionError(f"septet {command} asked for nothing")


@pytest.mark.parametrize(
    ("command", "option"), [(command, option) for option, (_, commands) in ASKED.items() for command in commands]
)
async def test_an_option_changes_what_is_asked_of_the_server(command: str, option: str) -> None:
    """With the option the command sends another request than without it."""
    usual = LINES[command]
    words = [word for at, word in enumerate(usual) if option not in usual[max(at - 1, 0) : at + 1]]
    value = [ASKED[option][0]] if ASKED[option][0] else []
    assert await question(command, *words, option, *value) != await question(command, *usual)
