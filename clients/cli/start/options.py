"""The options of the commands that start work."""

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated, Final, Literal

from clients.cli.options import (
    AGENT_CHOICE,
    SERVER,
    Json,
    Sandbox,
    Server,
    Wait,
    argument,
    command_options,
    completed_by,
    option,
    option_group,
)

_SCENARIOS: Final = (
    "crash, false_claim, malformed, malformed_always, malformed_twice, refuse or slow; or your own file"
)
AnyRepo = Annotated[
    str | None, option("--repo", metavar="REPO", help="A path, a URL for git, or OWNER/NAME on GitHub.")
]
Target = Annotated[
    str | None,
    argument(
        "REPO|URL|N",
        help="A repository, the address of an issue, or its number. [default: the repository of this folder]",
    ),
]
Again = Annotated[bool, option("--again", help="Start even if the issue has an open work order.")]
Agent = Annotated[
    str | None,
    option(
        metavar="AGENT",
        help=f"One of {AGENT_CHOICE}. [default: the repository's, else SEPTET_AGENT]",
        completer=completed_by("agents"),
    ),
]
Model = Annotated[str | None, option(metavar="MODEL", help="The agent's model.")]
FallbackAgent = Annotated[
    str | None,
    option(metavar="AGENT", help="The agent that takes over if the first one reaches its usage limit or refuses."),
]
Base = Annotated[
    str | None, option(metavar="BRANCH", help="The branch to start from. [default: the repository's]")
]
PushTo = Annotated[
    str | None, option(metavar="OWNER/NAME", help="Push to this fork, and open the pull request in REPO.")
]
Project = Annotated[
    str | None, option(metavar="PROJECT", help="The project on the board. [default: the repository's name]")
]
Budget = Annotated[
    str | None, option(metavar="AMOUNT", help="Pause when agents have used this much: 5usd, 2Mtok, 90min.")
]
Draft = Annotated[bool, option("--draft", help="Open the pull request as a draft.")]
DryRun = Annotated[bool, option("--dry-run", help="Show what would run, and start nothing.")]
Sessions = Annotated[
    Literal["separate", "shared"] | None,
    option(
        "--sessions",
        help="`shared`: one agent session for planning and one for implementing; `separate`: one for each step.",
    ),
]


@option_group
class IssueOptions:
    """The issue: a number, a file, or a title and a body."""

    issue: Annotated[
        int | None, option("--issue", metavar="N", help="The number of an issue on the repository's forge.")
    ] = None
    issue_file: Annotated[
        Path | None, option("--issue-file", metavar="FILE", help="A text file; its first line is the title.")
    ] = None
    title: Annotated[str | None, option(metavar="TEXT", help="The issue's title.")] = None
    body: Annotated[str | None, option(metavar="TEXT", help="The issue's body.")] = None


@option_group
class OrderOptions:
    """The choices for a work order; except `id` and `step`, the options have the names of its input's fields."""

    agent: Agent = None
    fallback_agent: FallbackAgent = None
    model: Model = None
    base: Base = None
    push_to: PushTo = None
    id: Annotated[str | None, option("--id", metavar="ID", help="An id of your choice, such as wo-42.")] = None
    project: Project = None
    priority: Annotated[int | None, option(metavar="1-5", help="How urgent it is. [default: 3]")] = None
    impact: Annotated[int | None, option(metavar="1-5", help="How much it is worth. [default: 3]")] = None
    effort: Annotated[
        int | None,
        option(metavar="1-5", help="How much work it is; score = priority + impact - effort. [default: 3]"),
    ] = None
    after: Annotated[
        list[str] | None,
        option(metavar="ID", help="A work order to wait for; can be repeated.", completer=completed_by("ids")),
    ] = None
    after_until: Annotated[
        Literal["merged", "completed", "closed"] | None,
        option(help="The state that --after waits for. [default: merged]"),
    ] = None
    label: Annotated[
        list[str] | None, option(metavar="LABEL", help="A label for the pull request; can be repeated.")
    ] = None
    approve_plan: Annotated[bool, option("--approve-plan", help="Wait for your approval after planning.")] = False
    plan_only: Annotated[
        bool, option("--plan-only", help="Stop after planning; septet retry implements the plan.")
    ] = False
    follow_pr: Annotated[
        bool,
        option(
            "--follow-pr",
            help="Have the agent fix failed checks, answer reviews and resolve conflicts until the merge.",
        ),
    ] = False
    draft: Draft = False
    budget: Budget = None
    sessions: Sessions = None
    step: Annotated[
        list[str] | None,
        option(
            "--step",
            metavar="STEP.KEY=VALUE",
            help="Set tools, model, budget, wall_seconds, idle_seconds or turns of a step: build_plan.model=opus.",
        ),
    ] = None


NO_ISSUE: Final = IssueOptions()
NO_CHOICES: Final = OrderOptions()


@command_options
class RunOptions:
    """The options of `septet run`."""

    target: Target = None
    _: KW_ONLY
    repo: AnyRepo = None
    issue: IssueOptions = NO_ISSUE
    order: OrderOptions = NO_CHOICES
    again: Again = False
    wait: Wait = False
    dry_run: DryRun = False
    server: Server = SERVER


@command_options
class CreateOptions:
    """The options of `septet create`."""

    target: Target = None
    _: KW_ONLY
    repo: AnyRepo = None
    issue: IssueOptions = NO_ISSUE
    stage: Annotated[
        Literal["collected", "triaged"], option(help="`collected` waits for you, `triaged` for its turn.")
    ] = "collected"
    order: OrderOptions = NO_CHOICES
    again: Again = False
    server: Server = SERVER


@command_options
class DemoOptions:
    """The options of `septet demo`."""

    _: KW_ONLY
    scenario: Annotated[
        str | None,
        option(
            metavar="SCENARIO",
            help=f"What the scripted agent does wrong: {_SCENARIOS}.",
            completer=completed_by("scenarios"),
        ),
    ] = None
    agent: Annotated[
        str,
        option(
            metavar="AGENT",
            help=f"One of {AGENT_CHOICE}; a real one costs money.",
            completer=completed_by("agents"),
        ),
    ] = "scripted"
    sandbox: Sandbox = None
    as_json: Json = False


@command_options
class InitOptions:
    """The options of `septet init`."""

    _: KW_ONLY
    repo: Annotated[Path, option("--repo", metavar="DIR", help="The working tree of the repository.")] = Path()
    as_json: Json = False


@option_group
class IntakeOptions:
    """An intake as the command line gives it: the fields of its input."""

    repo: Annotated[str, option("--repo", metavar="REPO", help="A path, a URL for git, or OWNER/NAME on GitHub.")]
    label: Annotated[
        str | None, option(metavar="LABEL", help="Take issues with this label. [default: septet]")
    ] = None
    every: Annotated[
        int | None, option(metavar="SECONDS", help="Seconds between checks of the forge. [default: 300]")
    ] = None
    agent: Agent = None
    model: Model = None
    project: Project = None
    at_once: Annotated[bool, option("--at-once", help="Begin without waiting for a turn on the board.")] = False
    approve_plan: Annotated[bool, option("--approve-plan", help="Wait for approval after planning.")] = False
    draft: Draft = False


@command_options
class AddIntakeOptions:
    """The options of `septet intake add`."""

    _: KW_ONLY
    intake: IntakeOptions
    server: Server = SERVER


@command_options
class IntakesOptions:
    """The options of `septet intake list`."""

    _: KW_ONLY
    server: Server = SERVER


@command_options
class RemoveIntakeOptions:
    """The options of `septet intake remove`."""

    intake_id: Annotated[str, argument(metavar="ID", help="The intake, as `septet intake list` shows it.")]
    _: KW_ONLY
    server: Server = SERVER
