"""`septet issue`: issues of the local forge."""

from dataclasses import asdict
from pathlib import Path

from rich.text import Text

from clients.cli import tables
from clients.cli.reply import Reply, reply
from septet.errors import UsageError
from septet.forges.local import LocalForge
from septet.git.address import parse_address
from septet.settings import load_settings


def add(repo: str, title: str, body: str, labels: list[str], *, as_json: bool) -> None:
    """Add an issue to the forge of a repository on disk."""

    async def work() -> Reply:
        settings = load_settings()
        address = parse_address(repo, home=Path.home(), cwd=Path.cwd())
        if address.path is None:
            raise UsageError(f"{repo} is not on this machine.", remedy="Open the issue on its own forge.")
        issue = LocalForge(address.path, settings.git_env).add_issue(title, body, labels)
        return Reply(
            {"issue": asdict(issue)}, lambda: tables.console().print(Text(f"#{issue.number} {issue.url}"))
        )

    reply(work, as_json=as_json)
