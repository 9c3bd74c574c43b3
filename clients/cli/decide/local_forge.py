"""`septet issue` and `septet pr`: issues and pull requests of the local forge."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final, Literal

from temporalio.service import RPCError

from clients.cli.decide.options import (
    AddIssueOptions,
    LocalListOptions,
    OneIssueOptions,
    OnePullRequestOptions,
    PullRequestsOptions,
)
from clients.cli.terminal.console import page_patch
from clients.cli.terminal.output import echo
from clients.cli.terminal.reply import CommandReply
from clients.starting.repository_path import repository_here
from clients.temporal.deliveries import tell_watches
from septet.errors import SeptetError, ServerNotReachedError, UsageError
from septet.forges.local.forge import LocalForge
from septet.git.engine.address import parse_address
from septet.settings import load_settings
from septet.system.masking import printable
from workers.connection.connection import connect

_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
"""The pattern of HTML comments, which only programs read."""


async def add_issue(options: AddIssueOptions) -> CommandReply:
    """Add an issue."""
    if not options.title.strip():
        raise UsageError("--title is empty.", remedy="Say in a few words what is wrong or wanted.")
    forge = _forge(options.repo, "Open the issue on its own forge.")
    issue = forge.add_issue(options.title, options.body, options.label or [])
    return CommandReply({"issue": asdict(issue)}, lambda: echo(f"#{issue.number} {issue.url}"))


async def list_issues(options: LocalListOptions) -> CommandReply:
    """List the open issues."""
    found = _forge(options.repo, "See the issues on its own forge.").list_issues()
    chosen = [issue for issue in found if options.everything or issue.state == "open"]
    rows = [(f"#{issue.number}", issue.state, issue.title, ", ".join(issue.labels)) for issue in chosen]
    payload = {"issues": [asdict(issue) for issue in chosen]}
    return CommandReply(payload, lambda: _show_rows(rows, "There are no open issues."))


async def show_issue(options: OneIssueOptions) -> CommandReply:
    """Show an issue with its comments."""
    issue = _forge(options.repo, "See the issue on its own forge.").issue(options.number)
    comments = [f"\n{each.author}, {each.created_at}:\n{each.body}" for each in issue.comments]
    parts = (f"#{issue.number} {issue.title}  ({issue.state})", issue.url, f"\n{issue.body}".rstrip(), *comments)
    return CommandReply({"issue": asdict(issue)}, lambda: echo(printable("\n".join(filter(None, parts)))))


async def close_issue(options: OneIssueOptions) -> CommandReply:
    """Close an issue."""
    issue = _forge(options.repo, "Close the issue on its own forge.").close_issue(options.number)
    text = f"#{issue.number} {issue.url} is {issue.state}"
    return CommandReply({"issue": asdict(issue)}, lambda: echo(text))


async def list_pull_requests(options: LocalListOptions) -> CommandReply:
    """List the open pull requests."""
    found = _forge(options.repo, "See the pull requests on its own forge.").list_pull_requests()
    chosen = [(pull, title) for pull, title in found if options.everything or pull.state == "open"]
    rows = [(f"#{pull.number}", pull.state, title, f"{pull.head} → {pull.base}") for pull, title in chosen]
    payload = {"pull_requests": [{**asdict(pull), "title": title} for pull, title in chosen]}
    return CommandReply(payload, lambda: _show_rows(rows, "There are no open pull requests."))


async def show_pull_request(options: OnePullRequestOptions) -> CommandReply:
    """Show a pull request: title, branches, state and text."""
    forge = _forge(options.repo, "See the pull request on its own forge.")
    pull, (title, body) = forge.pull_request(options.number), forge.pull_request_text(options.number)
    heading = f"#{pull.number} {title}  ({pull.state})\n{pull.head} → {pull.base}  {pull.url}"
    payload = {"pull_request": {**asdict(pull), "title": title, "body": body}}
    shown = _COMMENT.sub("", body).strip()
    return CommandReply(payload, lambda: echo(printable(f"{heading}\n\n{shown}")))


async def diff_pull_request(options: OnePullRequestOptions) -> CommandReply:
    """Show what a pull request changes, paged and in colours on a terminal."""
    patch = _forge(options.repo, "See the changes on its own forge.").pull_request_patch(options.number)
    return CommandReply({"patch": patch}, lambda: page_patch(patch))


async def _end(how: Literal["merge", "close"], options: PullRequestsOptions) -> CommandReply:
    """Merge or close pull requests until one fails; notify the watch of each merged or closed pull request."""
    settings, numbers = load_settings(), options.numbers
    forge = _forge(options.repo, f"{how.capitalize()} it on its own forge.")
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
        with suppress(ServerNotReachedError, RPCError):  # without a server it has no watch
            await tell_watches(await connect(settings), pulls[-1].url)
    done = [asdict(pull) for pull in pulls]
    verb = "Merged" if how == "merge" else "Closed"
    lines = [f"{verb} #{pull.number} {pull.url}" for pull in pulls]
    payload = {"pull_request": done[0]} if len(numbers) == 1 else {"pull_requests": done}
    return CommandReply(payload, lambda: echo("\n".join(lines)) if lines else None, failure)


merge_pull_requests = partial(_end, "merge")
close_pull_requests = partial(_end, "close")


def _forge(repo: str | None, remedy: str) -> LocalForge:
    """Return the local forge of a repository, by default of the repository around the current folder."""
    settings = load_settings()
    address = parse_address(repo or repository_here("--repo PATH"), home=Path.home(), cwd=Path.cwd())
    if address.path is None:
        raise UsageError(f"{repo} is not on this machine.", remedy=remedy)
    return LocalForge(address.path, settings.git_env)


def _show_rows(rows: Sequence[tuple[str, ...]], nothing: str) -> None:
    if not rows:
        echo(nothing)
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(2)]
    for number, state, *others in rows:
        parts = (number.ljust(widths[0]), state.ljust(widths[1]), *(other for other in others if other))
        echo(printable("  ".join(parts)))
