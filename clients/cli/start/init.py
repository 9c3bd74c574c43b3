"""`septet init`: write a repository's first settings file, and print what its worker needs."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from clients.cli.start.options import InitOptions
from clients.cli.terminal.output import say
from clients.cli.terminal.reply import CommandReply
from clients.disk.first_settings import LOOKED_FOR, FirstSettings, first_settings
from clients.starting.repository_path import enclosing_repository, is_repository
from septet.contracts.names import SETTINGS_PATH
from septet.errors import NotFoundError, RefusedTransitionError
from septet.settings import load_settings

_SANDBOX: Final = (
    "In the sandbox, agents can reach only their model's API; checks and set-up have no network. None of them can "
    "read your home, except for the language tools on your PATH, such as ~/.cargo."
)


async def init(options: InitOptions) -> CommandReply:
    """Write a first .septet/septet.toml for a repository."""
    folder = options.repo.expanduser().absolute()
    root = folder if is_repository(folder) else enclosing_repository(folder)
    if root is None or not (root / ".git").exists():
        message = f"{folder} is not a working tree of git."
        raise NotFoundError(message, remedy="Name one: septet init --repo DIR")
    path = root / SETTINGS_PATH
    if path.exists():
        remedy = f"Edit it; `septet doctor --repo {root}` checks it."
        raise RefusedTransitionError(f"{path} is there already.", remedy=remedy)
    here = load_settings()
    settings = first_settings(root, here.environ)
    path.parent.mkdir(exist_ok=True)
    path.write_text(settings.text(), encoding="utf-8")
    payload = {"path": str(path), **asdict(settings)}
    return CommandReply(payload, lambda: _show(path, root, settings, here.setup_hosts))


def _show(path: Path, root: Path, settings: FirstSettings, own_hosts: Sequence[str]) -> None:
    lines = [f"Written: {path}{', from ' if settings.sources else ''}{', '.join(settings.sources)}."]
    if not settings.sources:
        lines += [f"There is no {LOOKED_FOR} to take checks from."]
    if not settings.checks:
        lines += ['Write your own there, as lists of words: checks = [["make", "test"]]']
    lines += [f"  set-up  {' '.join(words)}" for words in settings.setup]
    lines += [f"  check   {' '.join(words)}" for words in settings.checks]
    lines += ["", _SANDBOX]
    if settings.hosts:
        lines += ["Set-up needs a registry of packages. Start the worker, again if it runs, with these hosts too:"]
        lines += [f"  SEPTET_SETUP_HOSTS={','.join(dict.fromkeys((*own_hosts, *settings.hosts)))} septet up"]
    lines += [*settings.notes, "", f"Read it, commit it to the base branch, then run: septet doctor --repo {root}"]
    say("\n".join(lines))
