"""What commands have in common on the command line: each option once, with its help."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_type_hints

import typer

from clients.cli.reply import CommandReply, reply_with_operations
from septet.contracts.names import AGENTS, SandboxChoice

AGENT_CHOICE: Final = f"{', '.join(AGENTS[:-1])} or {AGENTS[-1]}"
Json = Annotated[bool, typer.Option("--json", help="Answer with one JSON object on stdout.")]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="The Temporal server. [default: TEMPORAL_ADDRESS, else that of `septet up`]"
    ),
]


def _complete_id(incomplete: str) -> list[str]:
    """Return the work orders that this host's disk knows, for the shell's completion; no server is asked."""
    from clients.cli.completion import known_ids

    return known_ids(incomplete)


def complete_agent(incomplete: str) -> list[str]:
    """Return the agents that begin so, for the shell's completion."""
    return [name for name in AGENTS if name.startswith(incomplete)]


def complete_step(incomplete: str) -> list[str]:
    """Return the steps that begin so, for the shell's completion."""
    from septet.contracts.names import Step

    return [step.value for step in Step if step.value.startswith(incomplete)]


def complete_target(incomplete: str) -> list[str]:
    """Return where a work order can be moved to that begins so, for the shell's completion."""
    from septet.contracts.transitions import Target

    return [target.value for target in Target if target.value.startswith(incomplete)]


def complete_snapshot(incomplete: str) -> list[str]:
    """Return the rescues of this host that begin so, for the shell's completion."""
    from clients.cli.completion import known_snapshots

    return known_snapshots(incomplete)


Id = Annotated[
    str, typer.Argument(metavar="ID", help="The work order, such as wo-42.", autocompletion=_complete_id)
]
Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID",
        help="One work order or more, such as wo-42.",
        autocompletion=_complete_id,
        show_default=False,
    ),
]
AnyId = Annotated[
    str | None,
    typer.Argument(metavar="ID", help="The work order; the board without one.", autocompletion=_complete_id),
]
Repo = Annotated[
    str, typer.Option("--repo", metavar="REPO", help="A path, a URL for git, or OWNER/NAME on GitHub.")
]
AnyRepo = Annotated[
    str | None,
    typer.Option(
        "--repo", metavar="REPO", help="A path, a URL for git, or OWNER/NAME on GitHub.", show_default=False
    ),
]
Target = Annotated[
    str | None,
    typer.Argument(
        metavar="REPO|URL|N",
        help="A repository, the address of an issue, or its number. [default: the repository of this folder]",
    ),
]
Again = Annotated[bool, typer.Option("--again", help="Start even if the issue has an open work order.")]
Sandbox = Annotated[
    SandboxChoice | None,
    typer.Option("--sandbox", help="How agents are confined. [default: SEPTET_SANDBOX]"),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it ends, and show it live.")]
Why = Annotated[str, typer.Option(metavar="TEXT", help="Your reason, for its history.", show_default=False)]
Next = Annotated[
    str,
    typer.Option(metavar="NEXT", help="Continue a list: the `next` of its last page.", show_default=False),
]
Agent = Annotated[
    str | None,
    typer.Option(
        metavar="AGENT",
        help=f"One of {AGENT_CHOICE}. [default: the repository's, else SEPTET_AGENT]",
        autocompletion=complete_agent,
    ),
]
Model = Annotated[str | None, typer.Option(metavar="MODEL", help="The agent's model.")]
FallbackAgent = Annotated[
    str | None,
    typer.Option(
        metavar="AGENT", help="The agent that takes over if the first one reaches its usage limit or refuses."
    ),
]
Base = Annotated[
    str | None, typer.Option(metavar="BRANCH", help="The branch to start from. [default: the repository's]")
]
PushTo = Annotated[
    str | None,
    typer.Option(metavar="OWNER/NAME", help="Push to this fork, and open the pull request in REPO."),
]
Project = Annotated[
    str | None, typer.Option(metavar="PROJECT", help="The project on the board. [default: the repository's name]")
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="AMOUNT", help="Pause when agents have used this much: 5usd, 2Mtok, 90min.", show_default=False
    ),
]
Draft = Annotated[bool, typer.Option("--draft", help="Open the pull request as a draft.")]
SessionsOption = Annotated[
    Literal["separate", "shared"] | None,
    typer.Option(
        "--sessions",
        help="`shared`: one agent session for planning and one for implementing; `separate`: one for each step.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueOptions:
    """The issue: a number, a file, or a title and a body."""

    issue: Annotated[
        int | None, typer.Option("--issue", metavar="N", help="The number of an issue on the repository's forge.")
    ] = None
    issue_file: Annotated[
        Path | None,
        typer.Option("--issue-file", metavar="FILE", help="A text file; its first line is the title."),
    ] = None
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="The issue's title.")] = None
    body: Annotated[str | None, typer.Option(metavar="TEXT", help="The issue's body.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOptions:
    """How a work order is to be done; the names are those of the fields of its input, but for `id` and `step`."""

    agent: Agent = None
    fallback_agent: FallbackAgent = None
    model: Model = None
    base: Base = None
    push_to: PushTo = None
    id: Annotated[str | None, typer.Option("--id", metavar="ID", help="An id of your choice, such as wo-42.")] = (
        None
    )
    project: Project = None
    priority: Annotated[int | None, typer.Option(metavar="1-5", help="How urgent it is. [default: 3]")] = None
    impact: Annotated[int | None, typer.Option(metavar="1-5", help="How much it is worth. [default: 3]")] = None
    effort: Annotated[
        int | None,
        typer.Option(metavar="1-5", help="How much work it is; score = priority + impact - effort. [default: 3]"),
    ] = None
    after: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A work order to wait for; can be repeated.", autocompletion=_complete_id),
    ] = None
    after_until: Annotated[
        Literal["merged", "completed", "closed"] | None,
        typer.Option(help="The state that --after waits for. [default: merged]"),
    ] = None
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="A label for the pull request; can be repeated."),
    ] = None
    approve_plan: Annotated[
        bool, typer.Option("--approve-plan", help="Wait for your approval after planning.")
    ] = False
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="Stop after planning; septet retry implements the plan.")
    ] = False
    follow_pr: Annotated[
        bool,
        typer.Option(
            "--follow-pr",
            help="Have the agent fix failed checks, answer reviews and resolve conflicts until the merge.",
        ),
    ] = False
    draft: Draft = False
    budget: Budget = None
    sessions: SessionsOption = None
    step: Annotated[
        list[str] | None,
        typer.Option(
            "--step",
            metavar="STEP.KEY=VALUE",
            help="Set tools, model, budget, wall_seconds, idle_seconds or turns of a step: build_plan.model=opus.",
        ),
    ] = None


def current_user() -> str:
    """Return who decides, as histories show it."""
    from septet.settings import load_settings

    return load_settings().user


_COMMON: Final = (
    inspect.Parameter("address", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Address),
    inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json),
)
"""The last options of a command that asks a server."""


def give_operations(
    command: Callable[..., Awaitable[CommandReply]], check: Callable[..., None] | None = None
) -> Callable[..., None]:
    """Make a command of a coroutine function, whose first parameter is the operations that it asks.

    The command has `--address`, which names the server, and `--json`; the function may take `as_json` too.
    """
    own = dict(inspect.signature(command).parameters)
    del own["operations"]

    @wraps(command)
    def command_without_operations(**values: Any) -> None:  # noqa: ANN401 -- whatever its options are
        arguments = {name: values[name] for name in own}
        reply_with_operations(
            lambda operations: command(operations, **arguments),
            address=values["address"],
            as_json=values["as_json"],
            check=None if check is None else lambda: check(address=values["address"], **arguments),
        )

    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own.values()]
    parameters = [each for each in parameters if each.name != "as_json"]
    return _with_parameters(command_without_operations, [*parameters, *_COMMON])


def check_first(check: Callable[..., None]) -> Callable[[Callable[..., Awaitable[CommandReply]]], Any]:
    """Make a command as `give_operations` does, of which a check sees all options before a server is asked.

    Args:
        check: It raises where something is wrong; its parameters are those of the command, without operations, and
            the server's `address`.
    """

    def decorate(command: Callable[..., Awaitable[CommandReply]]) -> Callable[..., None]:
        return give_operations(command, check)

    return decorate


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of the dataclasses among its parameters, and it those filled in.

    Typer wants a parameter for each option; so options that belong together are still written once.
    """
    groups: dict[str, Any] = {}
    parameters = []
    for parameter in inspect.signature(command).parameters.values():
        if isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            parameters += _parameters_of(parameter.annotation)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def command_with_groups(**values: Any) -> None:  # noqa: ANN401 -- whatever its options are
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    return _with_parameters(command_with_groups, parameters)


def _with_parameters(command: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> Callable[..., None]:
    """Give a function that takes whatever comes the parameters of which Typer makes its options."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _parameters_of(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
