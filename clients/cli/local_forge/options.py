"""The options of the commands for issues and pull requests of a repository on this machine."""

from dataclasses import KW_ONLY
from typing import Annotated

from clients.cli.options import Json, argument, command_options, option

Repo = Annotated[
    str | None, option("--repo", metavar="PATH", help="The repository. [default: that of this folder]")
]


@command_options
class AddIssueOptions:
    """The options of `septet issue add`."""

    _: KW_ONLY
    title: Annotated[str, option(metavar="TEXT", help="The issue's title.")]
    repo: Repo = None
    body: Annotated[str, option(metavar="TEXT", help="The issue's body.")] = ""
    label: Annotated[list[str] | None, option(metavar="LABEL", help="A label; can be repeated.")] = None
    as_json: Json = False


@command_options
class LocalListOptions:
    """The options of the commands that list issues or pull requests."""

    _: KW_ONLY
    repo: Repo = None
    everything: Annotated[bool, option("--all", help="Include closed ones.")] = False
    as_json: Json = False


@command_options
class OneIssueOptions:
    """The options of the commands that show or close an issue."""

    number: Annotated[int, argument(metavar="N", help="The issue's number.", least=1)]
    _: KW_ONLY
    repo: Repo = None
    as_json: Json = False


@command_options
class OnePullRequestOptions:
    """The options of the commands that show a pull request."""

    number: Annotated[int, argument(metavar="N", help="The pull request's number.", least=1)]
    _: KW_ONLY
    repo: Repo = None
    as_json: Json = False


@command_options
class PullRequestsOptions:
    """The options of the commands that merge or close pull requests."""

    numbers: Annotated[list[int], argument(metavar="N", help="The pull requests' numbers.", least=1)]
    _: KW_ONLY
    repo: Repo = None
    as_json: Json = False
