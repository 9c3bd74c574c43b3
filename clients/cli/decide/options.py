"""The options of the commands for decisions, budgets, rescues, the local forge, and the documentation."""

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated, Final

from clients.cli.options import (
    SERVER,
    Id,
    Ids,
    Json,
    Next,
    Server,
    Wait,
    Why,
    argument,
    command_options,
    completed_by,
    option,
    option_group,
)

Repo = Annotated[
    str | None, option("--repo", metavar="PATH", help="The repository. [default: that of this folder]")
]
Feedback = Annotated[str, option(metavar="TEXT", help="What the agent should do differently.")]
Plan = Annotated[
    str | None, option(metavar="SHA256", help="The plan that you read; otherwise the one that waits now.")
]
Scope = Annotated[
    str, argument(metavar="BUDGET", help="day, project/NAME, pipeline/ID, or a work order such as wo-42.")
]
Amount = Annotated[
    str, argument(metavar="AMOUNT", help="Such as 5usd, 2Mtok, 90min or 5usd,90min; 20usd/day for each day.")
]
BudgetStep = Annotated[
    str, option("--step", metavar="STEP", help="Only this step's limit.", completer=completed_by("steps"))
]
_LIMIT_HELP: Final = (
    "How many to list at most, besides those of the day and of projects, which are on the first page."
)


@option_group
class OrderChoice:
    """The filters that choose work orders without ids, and whether to skip the confirmation."""

    everything: Annotated[bool, option("--all", help="Every work order that this applies to.")] = False
    repo: Annotated[str, option("--repo", metavar="REPO", help="Only those of this repository.")] = ""
    agent: Annotated[
        str, option("--agent", metavar="AGENT", help="Only those of this agent.", completer=completed_by("agents"))
    ] = ""
    yes: Annotated[bool, option("--yes", help="Do it without asking.")] = False


NO_CHOICE: Final = OrderChoice()


@command_options
class MoveOptions:
    """The options of `septet move`."""

    order_id: Id
    stage: Annotated[
        str,
        argument(
            metavar="STAGE",
            help="One of collected, triaged, executing, review, done, blocked and cancelled.",
            completer=completed_by("targets"),
        ),
    ]
    _: KW_ONLY
    why: Why = ""
    feedback: Feedback = ""
    server: Server = SERVER


@command_options
class ApproveOptions:
    """The options of `septet approve`."""

    ids: Ids = None
    _: KW_ONLY
    choice: OrderChoice = NO_CHOICE
    plan: Plan = None
    finding: Annotated[
        list[str] | None, option("--finding", metavar="ID", help="A finding that may be pushed; can be repeated.")
    ] = None
    why: Why = ""
    server: Server = SERVER


@command_options
class RejectOptions:
    """The options of `septet reject`."""

    order_id: Id
    _: KW_ONLY
    feedback: Feedback
    plan: Plan = None
    why: Why = ""
    server: Server = SERVER


@command_options
class CancelOptions:
    """The options of `septet cancel`."""

    ids: Ids = None
    _: KW_ONLY
    choice: OrderChoice = NO_CHOICE
    why: Why = ""
    server: Server = SERVER


@command_options
class RetryOptions:
    """The options of `septet retry`."""

    ids: Ids = None
    _: KW_ONLY
    choice: OrderChoice = NO_CHOICE
    error_type: Annotated[
        str | None, option("--failed", metavar="TYPE", help="All that failed with this error, such as DiskFull.")
    ] = None
    from_step: Annotated[
        str | None,
        option(
            "--from",
            metavar="STEP",
            help="An earlier step to go back to, also of a completed one.",
            completer=completed_by("steps"),
        ),
    ] = None
    why: Why = ""
    feedback: Feedback = ""
    wait: Wait = False
    server: Server = SERVER


@command_options
class BudgetsOptions:
    """The options of `septet budget list`."""

    _: KW_ONLY
    after: Next = ""
    limit: Annotated[int, option(metavar="N", help=_LIMIT_HELP, least=1, most=1000)] = 200
    server: Server = SERVER


@command_options
class OneBudgetOptions:
    """The options of `septet budget show`."""

    budget: Scope
    _: KW_ONLY
    server: Server = SERVER


@command_options
class SetBudgetOptions:
    """The options of `septet budget set`."""

    budget: Scope
    amount: Amount
    _: KW_ONLY
    step: BudgetStep = ""
    server: Server = SERVER


@command_options
class RaiseBudgetOptions:
    """The options of `septet budget raise`."""

    budget: Scope
    amount: Amount
    _: KW_ONLY
    step: BudgetStep = ""
    expected_limit: Annotated[
        str, option("--expected", metavar="LIMIT", help="Add nothing if the limit is no longer this one.")
    ] = ""
    server: Server = SERVER


@command_options
class RescuesOptions:
    """The options of `septet rescue list`."""

    order_id: Annotated[str | None, argument(metavar="ID", help="Only this work order's.")] = None
    _: KW_ONLY
    everything: Annotated[bool, option("--all", help="Include checkpoints.")] = False
    as_json: Json = False


@command_options
class RestoreOptions:
    """The options of `septet rescue restore`."""

    snapshot: Annotated[
        str,
        argument(
            metavar="SNAPSHOT", help="Its name, as `rescue list` shows it.", completer=completed_by("snapshots")
        ),
    ]
    _: KW_ONLY
    to: Annotated[Path, option(metavar="DIR", help="A new or empty folder.")]
    as_json: Json = False


@command_options
class DocsOptions:
    """The options of `septet docs`."""

    page: Annotated[
        str | None, argument(metavar="PAGE", help="A page, such as commands.", completer=completed_by("pages"))
    ] = None
    _: KW_ONLY
    as_json: Json = False


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
