"""What commands have in common on the command line: each option once, with its help."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter, Token
from pydantic import Field, TypeAdapter

from clients.cli.commands import load
from septet.contracts.names import AGENTS, SandboxChoice
from septet.settings import load_settings

AGENT_CHOICE: Final = f"{', '.join(AGENTS[:-1])} or {AGENTS[-1]}"


def convert(kind: Any, tokens: Sequence[Token]) -> Any:  # noqa: ANN401 -- of any type
    """Return the value of an option or argument, by the rules of the contracts.

    Raises:
        ValueError: It is none, or it is given to a flag.
    """
    if kind is bool:
        raise ValueError("a flag takes no value")
    values = [token.value for token in tokens]
    return TypeAdapter(kind).validate_python(values if getattr(kind, "__origin__", None) is list else values[-1])


def option(
    *names: str,
    help: str,  # noqa: A002 -- the library's word
    metavar: str | None = None,
    completer: Callable[..., Any] | None = None,
) -> Parameter:
    """Return what an option is called, and its help; without names, the parameter's name is the option's."""
    return Parameter(
        name=names or None,
        metavar=metavar,
        help=help,
        completer=completer,
        converter=convert,
        allow_leading_hyphen=bool(metavar),
        allow_repeating=True,
        negative="",
    )


def argument(
    metavar: str,
    help: str,  # noqa: A002 -- as above
    completer: Callable[..., Any] | None = None,
) -> Parameter:
    """Return what an argument is called, and its help."""
    return Parameter(metavar=metavar, help=help, completer=completer, converter=convert, negative="")


def completed_by(name: str) -> Callable[[Any], list[str]]:
    """Return what completes a value: a function of `completion`, which is imported when a shell asks."""
    return lambda context: list(load(f"clients.cli.completion:{name}")(context.incomplete))


Json = Annotated[bool, option("--json", help="Answer with one JSON object on stdout.")]
Address = Annotated[
    str | None,
    option(metavar="HOST:PORT", help="The Temporal server. [default: TEMPORAL_ADDRESS, else that of `septet up`]"),
]
Id = Annotated[str, argument("ID", help="The work order, such as wo-42.", completer=completed_by("ids"))]
Ids = Annotated[
    list[str] | None,
    argument(
        "ID",
        help="One work order or more, such as wo-42.",
        completer=completed_by("ids"),
    ),
]
AnyId = Annotated[
    str | None,
    argument("ID", help="The work order; the board without one.", completer=completed_by("ids")),
]
Repo = Annotated[str, option("--repo", metavar="REPO", help="A path, a URL for git, or OWNER/NAME on GitHub.")]
AnyRepo = Annotated[
    str | None,
    option("--repo", metavar="REPO", help="A path, a URL for git, or OWNER/NAME on GitHub."),
]
Target = Annotated[
    str | None,
    argument(
        "REPO|URL|N",
        help="A repository, the address of an issue, or its number. [default: the repository of this folder]",
    ),
]
Again = Annotated[bool, option("--again", help="Start even if the issue has an open work order.")]
Port = Annotated[int, Field(ge=1, le=65535), option(metavar="PORT", help="The embedded server's port.")]
UiPort = Annotated[int, Field(ge=1, le=65535), option(metavar="PORT", help="The port of Temporal's web UI.")]
ApiPort = Annotated[
    int, Field(ge=1, le=65535), option(metavar="PORT", help="The port of the page and the HTTP API.")
]
Sandbox = Annotated[
    SandboxChoice | None,
    option("--sandbox", help="How agents are confined. [default: SEPTET_SANDBOX]"),
]
Wait = Annotated[bool, option("--wait", help="Wait until it ends, and show it live.")]
Why = Annotated[str, option(metavar="TEXT", help="Your reason, for its history.")]
Next = Annotated[
    str,
    option(metavar="NEXT", help="Continue a list: the `next` of its last page."),
]
Limit = Annotated[int, Field(ge=1, le=1000), option(metavar="N", help="How many to list at most.")]
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
    str | None,
    option(metavar="OWNER/NAME", help="Push to this fork, and open the pull request in REPO."),
]
Project = Annotated[
    str | None, option(metavar="PROJECT", help="The project on the board. [default: the repository's name]")
]
Budget = Annotated[
    str | None,
    option(metavar="AMOUNT", help="Pause when agents have used this much: 5usd, 2Mtok, 90min."),
]
Draft = Annotated[bool, option("--draft", help="Open the pull request as a draft.")]
SessionsOption = Annotated[
    Literal["separate", "shared"] | None,
    option(
        "--sessions",
        help="`shared`: one agent session for planning and one for implementing; `separate`: one for each step.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class IssueOptions:
    """The issue: a number, a file, or a title and a body."""

    issue: Annotated[
        int | None, option("--issue", metavar="N", help="The number of an issue on the repository's forge.")
    ] = None
    issue_file: Annotated[
        Path | None,
        option("--issue-file", metavar="FILE", help="A text file; its first line is the title."),
    ] = None
    title: Annotated[str | None, option(metavar="TEXT", help="The issue's title.")] = None
    body: Annotated[str | None, option(metavar="TEXT", help="The issue's body.")] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOptions:
    """How a work order is to be done; the names are those of the fields of its input, but for `id` and `step`."""

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
        list[str] | None,
        option(metavar="LABEL", help="A label for the pull request; can be repeated."),
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
    sessions: SessionsOption = None
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


def current_user() -> str:
    """Return who decides, as histories show it."""
    return load_settings().user
