"""`septet pr`: pull requests of the local forge."""

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from rich.text import Text
from temporalio.service import RPCError

from clients._watch import look_now
from clients.cli import tables
from clients.cli.reply import Reply, reply
from septet.errors import ServerNotReachedError, UsageError
from septet.forges.local import LocalForge
from septet.git.address import parse_address
from septet.settings import load_settings
from workers.connection import connect


def end(repo: str, number: int, how: Literal["merge", "close"], *, as_json: bool) -> None:
    """Merge or close a pull request of a repository on disk; the board shows it at once where a server answers."""

    async def work() -> Reply:
        address = parse_address(repo, home=Path.home(), cwd=Path.cwd())
        if address.path is None:
            raise UsageError(
                f"{repo} is not on this machine.", remedy=f"Do that on its own forge: {how} it there."
            )
        settings = load_settings()
        forge = LocalForge(address.path, settings.git_env)
        ended = forge.merge_pull_request(number) if how == "merge" else forge.close_pull_request(number)
        with suppress(ServerNotReachedError, RPCError):  # without a server nobody watches it
            await look_now(await connect(settings), ended.url)
        said = Text(f"#{ended.number} {ended.url} is {ended.state}")
        return Reply({"pull_request": asdict(ended)}, lambda: tables.console().print(said))

    reply(work, as_json=as_json)
