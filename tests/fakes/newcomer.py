"""A new user: `septet up` in one terminal, and their own repository in another."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fakes.repositories import git
from fakes.septet_command import Septet, free_ports
from fakes.shared_server import until_agents_are_announced
from fakes.terminal import Terminal, terminal

TITLE = "Fix the greeting"
BODY = "In `app.py`, `Helo` should be `Hello`. Write `greeting fixed` into `CHANGES.md`."
"""A task that the scripted agent can do in any repository, as the quickstart says."""


@dataclass(frozen=True)
class Newcomer:
    septet: Septet
    up: Terminal

    def repository(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        git(folder, "init", "--quiet", "--initial-branch", "main")
        (folder / "app.py").write_text('print("Helo")\n', encoding="utf-8")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", "one")
        return folder


@contextmanager
def newcomer_at(root: Path) -> Iterator[Newcomer]:
    septet = Septet(root)
    options = ("--port", "--ui-port", "--api-port")
    ports = [part for pair in zip(options, map(str, free_ports(3)), strict=True) for part in pair]
    try:
        with terminal(septet, "up", *ports) as up:
            begun = up.until("Ctrl-C stops the server and the worker")
            septet.page = begun.partition("Open in your browser: ")[2].split()[0]
            asyncio.run(until_agents_are_announced(septet))
            yield Newcomer(septet, up)
            up.interrupt()
            up.end()
    finally:
        septet.end_all()
