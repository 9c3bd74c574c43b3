"""What the commands that serve have in common: stop signals, logged errors, masked keys and hints."""

import asyncio
import json
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final, Self

from clients.cli.terminal.output import echo, say
from clients.cli.terminal.reply import CommandReply
from septet.agents.clis.adapter import Machine
from septet.agents.clis.registry import ADAPTERS
from septet.agents.runs.folders import Run
from septet.agents.runs.homes import hide_keys_of
from septet.contracts.task import TaskError
from septet.errors import SeptetError
from septet.settings import Settings, load_settings
from septet.system.masking import mask
from septet.system.text import timestamp
from workers.observing.logs import logs_are_json

_HINT: Final = "If Safari does not find that name, put 127.0.0.1 in its place."
_ALL: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class StopSignals:
    """The stop signals that a serving program has received, as two events.

    When a terminal closes, SIGHUP stops the program like Ctrl-C, unless the program runs under `nohup`.
    """

    first: asyncio.Event = field(default_factory=asyncio.Event)
    second: asyncio.Event = field(default_factory=asyncio.Event)
    """The event that Ctrl-C sets after a first signal."""

    @classmethod
    def listen(cls) -> Self:
        """Handle the stop signals from now on, and return the two events that the signals set."""
        signals = cls()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, signals.first.set)
        if _heeds_hangup():
            loop.add_signal_handler(signal.SIGHUP, signals.first.set)
        loop.add_signal_handler(signal.SIGINT, signals._interrupt)
        return signals

    def _interrupt(self) -> None:
        (self.second if self.first.is_set() else self.first).set()

    @staticmethod
    def end_start() -> None:
        """Until `listen` is called, let the first stop signal act like Ctrl-C, and ignore all later signals."""
        interrupt = signal.getsignal(signal.SIGINT)
        heeded = _ALL if _heeds_hangup() else _ALL[:2]

        def interrupt_once(number: int, frame: FrameType | None) -> None:
            for each in heeded:
                signal.signal(each, signal.SIG_IGN)
            if callable(interrupt):
                interrupt(number, frame)

        for each in heeded:
            signal.signal(each, interrupt_once)


def _heeds_hangup() -> bool:
    return signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN


def reply_at_stop(living: Sequence[Run], start: str) -> CommandReply:
    """Print on stderr which agents live on, and the commands that adopt and end them; return an empty reply."""
    orders = dict.fromkeys(run.record.key.workflow_id for run in living if run.record is not None)
    for run in living:
        who = (
            f"{run.record.key.workflow_id}, step {run.record.step}"
            if run.record is not None
            else "an unknown step"
        )
        say(f"The agent of {who} keeps running ({run.name}).", err=True)
    if orders:
        verb = f"`{start}` again takes {'them' if len(living) > 1 else 'it'} over"
        say(f"{verb}. Then `septet cancel {' '.join(orders)}` ends the work, and keeps it in a rescue.", err=True)
    return CommandReply(is_printed=True)


def septet_here(environ: Mapping[str, str]) -> str:
    """Return the command with which to call `septet` in this terminal."""
    return "septet" if shutil.which("septet", path=environ.get("PATH")) else _own_path()


def septet_elsewhere(settings: Settings) -> str:
    """Return the command with which to call `septet` in another terminal, with `SEPTET_STATE_DIR` if needed."""
    environ = settings.environ
    active = environ.get("VIRTUAL_ENV", "")
    found = shutil.which("septet", path=environ.get("PATH"))
    is_everywhere = found is not None and not (active and Path(found).is_relative_to(active))
    is_named = "state_dir" in settings.model_fields_set
    state = f"SEPTET_STATE_DIR={shlex.quote(str(settings.state_dir))} " if is_named else ""
    return f"{state}{'septet' if is_everywhere else _own_path()}"


def _own_path() -> str:
    return shlex.quote(str(Path(sys.executable).parent / "septet"))


def log_end(error: TaskError) -> bool:
    """If logs are JSON, log the error that ends this service, and return true; otherwise, return false."""
    try:
        settings = load_settings()
    except SeptetError:  # the settings are the error
        settings = None
    if not logs_are_json(settings):
        return False
    event = {"event": "ended_by_error", **error.model_dump(), "level": "error"}
    line = json.dumps({**event, "timestamp": timestamp(datetime.now(UTC))}, ensure_ascii=False)
    sys.stderr.write(mask(line) + "\n")
    return True


def hide_login_keys(settings: Settings) -> None:
    """Mask the keys of the CLIs' logins in all output; call this again after a login is refreshed."""
    machine = Machine(settings.environ, settings.agent_programs)
    for adapter in ADAPTERS.values():
        hide_keys_of(adapter, machine)


def show_page_link(page: str) -> None:
    """Print the link to the page, with a hint for macOS."""
    for line in page_link_lines(page, sys.platform):
        echo(line)


def page_link_lines(page: str, platform: str) -> list[str]:
    """Return the lines with the link to the page; `platform` is a value of `sys.platform`."""
    return [f"Open in your browser: {page}", *([_HINT] if platform == "darwin" else [])]
