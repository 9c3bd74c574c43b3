"""`septet issue` and `septet pr`: issues and pull requests of the local forge."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from clients.cli import options as given
from clients.cli.grouped_help import command_group
from clients.cli.reply import CommandReply, reply
from septet.errors import SeptetError, ServerNotReachedError, UsageError

if TYPE_CHECKING:
    from septet.forges.local.forge import LocalForge

issues = command_group("issue", "Add, list, show and close issues of a repository on this machine.")
pulls = command_group("pr", "List, show, merge and close pull requests of a repository on this machine.")
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
"""What a pull request's text has for programs."""
Number = Annotated[int, typer.Argument(metavar="N", help="The pull request's number.", min=1)]
Numbers = Annotated[list[int], typer.Argument(metavar="N", help="The pull requests' numbers.", min=1)]
IssueNumber = Annotated[int, typer.Argument(metavar="N", help="The issue's number.", min=1)]
Everything = Annotated[bool, typer.Option("--all", help="Include closed ones.")]
Repo = Annotated[
    str | None,
    typer.Option("--repo", metavar="PATH", help="The repository. [default: that of this folder]"),
]


@issues.command()
def add(
    title: Annotated[str, typer.Option(metavar="TEXT", help="The issue's title.")],
    repo: Repo = None,
    body: Annotated[str, typer.Option(metavar="TEXT", help="The issue's body.", show_default=False)] = "",
    label: Annotated[list[str] | None, typer.Option(metavar="LABEL", help="A label; can be repeated.")] = None,
    as_json: given.Json = False,
) -> None:
    """Add an issue.

    Example: septet issue add --title 'Totals are wrong' --body 'add(1, 2) gives -1'
    """

    async def work() -> CommandReply:
        if not title.strip():
            raise UsageError("--title is empty.", remedy="Say in a few words what is wrong or wanted.")
        forge = _forge(repo, "Open the issue on its own forge.")
        issue = forge.add_issue(title, body, label or [])
        return CommandReply({"issue": asdict(issue)}, lambda: typer.echo(f"#{issue.number} {issue.url}"))

    reply(work, as_json=as_json)


@issues.command(name="list")
def list_issues(repo: Repo = None, everything: Everything = False, as_json: given.Json = False) -> None:
    """List the open issues.

    Example: septet issue list
    """

    async def work() -> CommandReply:
        found = _forge(repo, "See the issues on its own forge.").list_issues()
        chosen = [issue for issue in found if everything or issue.state == "open"]
        rows = [(f"#{issue.number}", issue.state, issue.title, ", ".join(issue.labels)) for issue in chosen]
        payload = {"issues": [asdict(issue) for issue in chosen]}
        return CommandReply(payload, lambda: _show_rows(rows, "There are no open issues."))

    reply(work, as_json=as_json)


@issues.command(name="show")
def show_issue(number: IssueNumber, repo: Repo = None, as_json: given.Json = False) -> None:
    """Show an issue with its comments.

    Example: septet issue show 1
    """

    async def work() -> CommandReply:
        from septet.system.preview import printable

        issue = _forge(repo, "See the issue on its own forge.").issue(number)
        comments = [f"\n{each.author}, {each.created_at}:\n{each.body}" for each in issue.comments]
        parts = (
            f"#{issue.number} {issue.title}  ({issue.state})",
            issue.url,
            f"\n{issue.body}".rstrip(),
            *comments,
        )
        return CommandReply(
            {"issue": asdict(issue)}, lambda: typer.echo(printable("\n".join(filter(None, parts))))
        )

    reply(work, as_json=as_json)


@issues.command(name="close")
def close_issue(number: IssueNumber, repo: Repo = None, as_json: given.Json = False) -> None:
    """Close an issue.

    Example: septet issue close 1
    """

    async def work() -> CommandReply:
        issue = _forge(repo, "Close the issue on its own forge.").close_issue(number)
        text = f"#{issue.number} {issue.url} is {issue.state}"
        return CommandReply({"issue": asdict(issue)}, lambda: typer.echo(text))

    reply(work, as_json=as_json)


@pulls.command(name="list")
def list_pull_requests(repo: Repo = None, everything: Everything = False, as_json: given.Json = False) -> None:
    """List the open pull requests.

    Example: septet pr list
    """

    async def work() -> CommandReply:
        found = _forge(repo, "See the pull requests on its own forge.").list_pull_requests()
        chosen = [(pull, title) for pull, title in found if everything or pull.state == "open"]
        rows = [(f"#{pull.number}", pull.state, title, f"{pull.head} → {pull.base}") for pull, title in chosen]
        payload = {"pull_requests": [{**asdict(pull), "title": title} for pull, title in chosen]}
        return CommandReply(payload, lambda: _show_rows(rows, "There are no open pull requests."))

    reply(work, as_json=as_json)


@pulls.command(name="show")
def show_pull_request(number: Number, repo: Repo = None, as_json: given.Json = False) -> None:
    """Show a pull request: title, branches, state and text.

    Example: septet pr show 1
    """

    async def work() -> CommandReply:
        from septet.system.preview import printable

        forge = _forge(repo, "See the pull request on its own forge.")
        pull, (title, body) = forge.pull_request(number), forge.pull_request_text(number)
        heading = f"#{pull.number} {title}  ({pull.state})\n{pull.head} → {pull.base}  {pull.url}"
        payload = {"pull_request": {**asdict(pull), "title": title, "body": body}}
        shown = _COMMENT.sub("", body).strip()
        return CommandReply(payload, lambda: typer.echo(printable(f"{heading}\n\n{shown}")))

    reply(work, as_json=as_json)


@pulls.command(name="diff")
def diff_pull_request(number: Number, repo: Repo = None, as_json: given.Json = False) -> None:
    """Show what a pull request changes, paged and in colours on a terminal.

    Example: septet pr diff 1
    """

    async def work() -> CommandReply:
        from clients.cli.pager import page_patch

        patch = _forge(repo, "See the changes on its own forge.").pull_request_patch(number)
        return CommandReply({"patch": patch}, lambda: page_patch(patch))

    reply(work, as_json=as_json)


@pulls.command()
def merge(numbers: Numbers, repo: Repo = None, as_json: given.Json = False) -> None:
    """Merge pull requests into their base, and bring a clean checkout of the base along.

    Example: septet pr merge 1 2
    """
    _end(repo, numbers, "merge", as_json=as_json)


@pulls.command()
def close(numbers: Numbers, repo: Repo = None, as_json: given.Json = False) -> None:
    """Close pull requests without a merge; their branches stay.

    Example: septet pr close 1
    """
    _end(repo, numbers, "close", as_json=as_json)


def _end(repo: str | None, numbers: Sequence[int], how: Literal["merge", "close"], *, as_json: bool) -> None:
    """Merge or close pull requests until one refuses; the board shows each at once where a server answers."""

    async def work() -> CommandReply:
        from temporalio.service import RPCError

        from clients.temporal.pull_request_watch import look_now
        from septet.settings import load_settings
        from workers.connection.connection import connect

        settings = load_settings()
        forge = _forge(repo, f"{how.capitalize()} it on its own forge.")
        end = forge.merge_pull_request if how == "merge" else forge.close_pull_request
        pulls, failure = [], None
        asked = list(dict.fromkeys(numbers))
        for at, number in enumerate(asked, start=1):
            try:
                pulls.append(end(number))
            except SeptetError as error:
                if len(numbers) == 1:
                    raise
                left = f" No longer tried: {', '.join(map(str, asked[at:]))}." if asked[at:] else ""
                which = f"Pull request {number}"
                message = error.message if error.message.startswith(which) else f"{which}: {error.message}"
                failure = type(error)(f"{message}{left}", remedy=error.remedy)
                break
            with suppress(ServerNotReachedError, RPCError):  # without a server nobody watches it
                await look_now(await connect(settings), pulls[-1].url)
        done = [asdict(pull) for pull in pulls]
        verb = "Merged" if how == "merge" else "Closed"
        lines = [f"{verb} #{pull.number} {pull.url}" for pull in pulls]
        payload = {"pull_request": done[0]} if len(numbers) == 1 else {"pull_requests": done}
        return CommandReply(payload, lambda: typer.echo("\n".join(lines), nl=bool(lines)), failure)

    reply(work, as_json=as_json)


def _forge(repo: str | None, remedy: str) -> "LocalForge":
    """Return the forge of a repository on this machine, by default of the one that this folder is in.

    Raises:
        UsageError: It is elsewhere, and the remedy says what to do there; or none is named.
    """
    from clients.repository_path import repository_here
    from septet.forges.local.forge import LocalForge
    from septet.git.engine.address import parse_address
    from septet.settings import load_settings

    settings = load_settings()
    address = parse_address(repo or repository_here("--repo PATH"), home=Path.home(), cwd=Path.cwd())
    if address.path is None:
        raise UsageError(f"{repo} is not on this machine.", remedy=remedy)
    return LocalForge(address.path, settings.git_env)


def _show_rows(rows: Sequence[tuple[str, ...]], nothing: str) -> None:
    from septet.system.preview import printable

    if not rows:
        typer.echo(nothing)
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(2)]
    for number, state, *others in rows:
        parts = (number.ljust(widths[0]), state.ljust(widths[1]), *(other for other in others if other))
        typer.echo(printable("  ".join(parts)))
