"""`septet issue` and `septet pr`: issues and pull requests of the local forge."""

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from clients.cli import options as given
from clients.cli.reply import CommandReply, reply
from septet.errors import ServerNotReachedError, UsageError

if TYPE_CHECKING:
    from septet.forges.local import LocalForge
    from septet.settings import Settings

issues = typer.Typer(name="issue", help="Issues of the local forge.", no_args_is_help=True, rich_markup_mode=None)
pulls = typer.Typer(
    name="pr", help="Pull requests of the local forge.", no_args_is_help=True, rich_markup_mode=None
)
Number = Annotated[int, typer.Argument(metavar="N", help="The pull request's number.", min=1)]


@issues.command()
def add(
    repo: given.Repo,
    title: Annotated[str, typer.Option(help="The issue's title.")],
    body: Annotated[str, typer.Option(help="The issue's body.")] = "",
    label: Annotated[list[str] | None, typer.Option(help="A label; may be given several times.")] = None,
    as_json: given.Json = False,
) -> None:
    """Add an issue to the local forge of a repository on disk.

    Example: septet issue add --repo ./app --title 'Totals are wrong'
    """

    async def work() -> CommandReply:
        from septet.settings import load_settings

        forge = _forge(repo, load_settings(), "Open the issue on its own forge.")
        issue = forge.add_issue(title, body, label or [])
        return CommandReply({"issue": asdict(issue)}, lambda: typer.echo(f"#{issue.number} {issue.url}"))

    reply(work, as_json=as_json)


@pulls.command()
def merge(repo: given.Repo, number: Number, as_json: given.Json = False) -> None:
    """Merge a pull request of a repository on disk into its base.

    Example: septet pr merge --repo ./app.git 1
    """
    _end(repo, number, "merge", as_json=as_json)


@pulls.command()
def close(repo: given.Repo, number: Number, as_json: given.Json = False) -> None:
    """Close a pull request of a repository on disk without a merge; its branch stays.

    Example: septet pr close --repo ./app.git 1
    """
    _end(repo, number, "close", as_json=as_json)


def _end(repo: str, number: int, how: Literal["merge", "close"], *, as_json: bool) -> None:
    """Merge or close a pull request; the board shows it at once where a server answers."""

    async def work() -> CommandReply:
        from temporalio.service import RPCError

        from clients.temporal.pull_request_watch import look_now
        from septet.settings import load_settings
        from workers.connection import connect

        settings = load_settings()
        forge = _forge(repo, settings, f"Do that on its own forge: {how} it there.")
        pull = forge.merge_pull_request(number) if how == "merge" else forge.close_pull_request(number)
        with suppress(ServerNotReachedError, RPCError):  # without a server nobody watches it
            await look_now(await connect(settings), pull.url)
        text = f"#{pull.number} {pull.url} is {pull.state}"
        return CommandReply({"pull_request": asdict(pull)}, lambda: typer.echo(text))

    reply(work, as_json=as_json)


def _forge(repo: str, settings: "Settings", remedy: str) -> "LocalForge":
    """Return the forge of a repository on this machine.

    Raises:
        UsageError: It is elsewhere; the remedy says what to do there.
    """
    from septet.forges.local import LocalForge
    from septet.git.address import parse_address

    address = parse_address(repo, home=Path.home(), cwd=Path.cwd())
    if address.path is None:
        raise UsageError(f"{repo} is not on this machine.", remedy=remedy)
    return LocalForge(address.path, settings.git_env)
