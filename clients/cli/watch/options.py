"""The options of the commands that show work."""

from dataclasses import KW_ONLY
from typing import Annotated, Literal

from clients.cli.options import SERVER, Id, Limit, Next, Server, argument, command_options, completed_by, option
from septet.contracts.names import CostKey


@command_options
class OneOrderOptions:
    """The options of the commands that show one work order."""

    order_id: Id
    _: KW_ONLY
    server: Server = SERVER


@command_options
class OrdersOptions:
    """The options of `septet list`."""

    _: KW_ONLY
    state: Annotated[
        Literal["open", "pending", "running", "waiting", "completed", "failed", "cancelled"] | None,
        option(help="Only those in this state."),
    ] = None
    agent: Annotated[
        str, option(metavar="AGENT", help="Only those of this agent.", completer=completed_by("agents"))
    ] = ""
    repo: Annotated[str, option("--repo", metavar="REPO", help="Only those of this repository.")] = ""
    since: Annotated[str, option(metavar="AGE", help="Only those started within this time: 30m, 12h, 7d.")] = ""
    after: Next = ""
    limit: Limit = 30
    server: Server = SERVER


@command_options
class BoardOptions:
    """The options of `septet board`."""

    _: KW_ONLY
    project: Annotated[str | None, option(metavar="PROJECT", help="Only this project.")] = None
    follow: Annotated[bool, option("--follow", "-f", help="Show it again when it changes.")] = False
    everything: Annotated[bool, option("--all", help="Also show work that was done more than 7 days ago.")] = False
    after: Next = ""
    limit: Limit = 500
    server: Server = SERVER


@command_options
class LogsOptions:
    """The options of `septet logs`."""

    order_id: Id
    _: KW_ONLY
    follow: Annotated[bool, option("--follow", "-f", help="Follow it until the work order ends.")] = False
    raw: Annotated[bool, option("--raw", help="Show the bytes that the agents printed.")] = False
    structured: Annotated[bool, option("--structured", help="Also show the agents' structured answers.")] = False
    network: Annotated[bool, option("--network", help="Show the network requests, and which were refused.")] = (
        False
    )
    server: Server = SERVER


@command_options
class CostsOptions:
    """The options of `septet costs`."""

    _: KW_ONLY
    by: Annotated[CostKey, option(help="Group by this.")] = "project"
    since: Annotated[str, option(metavar="WEEK", help="Count from this week on: 2026-W40, 4w or 30d.")] = ""
    project: Annotated[str, option(metavar="PROJECT", help="Only this project.")] = ""
    server: Server = SERVER


@command_options
class OpenOptions:
    """The options of `septet open`."""

    order_id: Annotated[
        str | None, argument("ID", help="The work order; the board without one.", completer=completed_by("ids"))
    ] = None
    _: KW_ONLY
    pull_request: Annotated[bool, option("--pr", help="Open its pull request instead of its page.")] = False
    new_key: Annotated[bool, option("--new-key", help="Make a new key: old links end when `septet up` does.")] = (
        False
    )
    server: Server = SERVER
