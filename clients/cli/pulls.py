"""`septet pr`: pull requests of the local forge."""

from dataclasses import asdict
from pathlib import Path
from typing import Literal

from rich.text import Text

from clients.cli import tables
from clients.cli.reply import Reply, reply
from septet.errors import UsageError
from septet.forges.local import LocalForge
from septet.git.address import parse_address
from septet.settings import load_settings


def end(repo: str, number: int, how: Literal["merge", "close"], *, as_json: bool) -> None:
    """Merge or close a pull request of a repository on disk."""

    async def work() -> Reply:
        address = parse_address(repo, home=Path.home(), cwd=Path.cwd())
        if address.path is None:
            raise UsageError(
                f"{repo} is not on this machine.", remedy=f"Do that on its own forge: {how} it there."
            )
        forge = LocalForge(address.path, load_settings().git_env)
        ended = forge.merge_pull_request(number) if how == "merge" else forge.close_pull_request(number)
        said = Text(f"#{ended.number} {ended.url} is {ended.state}")
        return Reply({"pull_request": asdict(ended)}, lambda: tables.console().print(said))

    reply(work, as_json=as_json)
