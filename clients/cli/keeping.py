"""Groups of commands for what is kept on disk: rescues, and the issues and pull requests of the local forge."""

from pathlib import Path
from typing import Annotated

import typer

from clients.cli import options as given

rescue = typer.Typer(name="rescue", help="Get work back.", no_args_is_help=True, rich_markup_mode=None)
issue = typer.Typer(name="issue", help="Issues of the local forge.", no_args_is_help=True, rich_markup_mode=None)
pull = typer.Typer(
    name="pr", help="Pull requests of the local forge.", no_args_is_help=True, rich_markup_mode=None
)
Number = Annotated[int, typer.Argument(metavar="N", help="The pull request's number.", min=1)]


@rescue.command("list")
def rescue_list(
    order_id: Annotated[str | None, typer.Argument(metavar="ID", help="Only this work order's.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="The checkpoints too.")] = False,
    as_json: given.Json = False,
) -> None:
    """List the rescues on this host.

    Example: septet rescue list wo-42
    """
    from clients.cli import rescues

    rescues.list_(order_id, everything=everything, as_json=as_json)


@rescue.command("restore")
def rescue_restore(
    snapshot: Annotated[str, typer.Argument(metavar="SNAPSHOT", help="Its name, as `rescue list` shows it.")],
    to: Annotated[Path, typer.Option(help="A new or empty folder.")],
    as_json: given.Json = False,
) -> None:
    """Restore a snapshot, bit for bit, into a folder of its own.

    Example: septet rescue restore wo-42/0007-rescue --to /tmp/back
    """
    from clients.cli import rescues

    rescues.restore(snapshot, to, as_json=as_json)


@issue.command("add")
def issue_add(
    repo: given.Repo,
    title: Annotated[str, typer.Option(help="The issue's title.")],
    body: Annotated[str, typer.Option(help="The issue's body.")] = "",
    label: Annotated[list[str] | None, typer.Option(help="A label; may be given several times.")] = None,
    as_json: given.Json = False,
) -> None:
    """Add an issue to the local forge of a repository on disk.

    Example: septet issue add --repo ./app --title 'Totals are wrong'
    """
    from clients.cli import issues

    issues.add(repo, title, body, label or [], as_json=as_json)


@pull.command("merge")
def pull_merge(repo: given.Repo, number: Number, as_json: given.Json = False) -> None:
    """Merge a pull request of a repository on disk into its base.

    Example: septet pr merge --repo ./app.git 1
    """
    from clients.cli import pulls

    pulls.end(repo, number, "merge", as_json=as_json)


@pull.command("close")
def pull_close(repo: given.Repo, number: Number, as_json: given.Json = False) -> None:
    """Close a pull request of a repository on disk without a merge; its branch stays.

    Example: septet pr close --repo ./app.git 1
    """
    from clients.cli import pulls

    pulls.end(repo, number, "close", as_json=as_json)
