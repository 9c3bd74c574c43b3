"""What commands have in common on the command line: each option once, with its help."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from septet.contracts.names import SandboxChoice

Json = Annotated[bool, typer.Option("--json", help="Answer with one JSON object on stdout.")]
Address = Annotated[str | None, typer.Option(help="The Temporal server, as host:port.")]


def _known_ids(incomplete: str) -> list[str]:
    """Return the work orders that this host's disk knows, for the shell's completion; no server is asked."""
    from clients.cli.completion import known_ids

    return known_ids(incomplete)


Id = Annotated[str, typer.Argument(metavar="ID", help="The work order, such as wo-42.", autocompletion=_known_ids)]
Repo = Annotated[str, typer.Option("--repo", help="A path, or an address that git takes.")]
Sandbox = Annotated[
    SandboxChoice | None, typer.Option("--sandbox", help="What confines agents; SEPTET_SANDBOX, else auto.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for its end.")]
Why = Annotated[str, typer.Option(help="Your reason, for its history.")]

IssueNumber = Annotated[int | None, typer.Option("--issue", help="An issue of the repository's forge.")]
IssueFile = Annotated[Path | None, typer.Option(help="A file with the issue: its first line is the title.")]
Title = Annotated[str | None, typer.Option(help="The issue's title.")]
Body = Annotated[str | None, typer.Option(help="The issue's body.")]

Agent = Annotated[str | None, typer.Option(help="The agent, such as claude.")]
Model = Annotated[str | None, typer.Option(help="The model to ask the agent for.")]
Base = Annotated[str | None, typer.Option(help="The branch to start from.")]
OrderId = Annotated[str | None, typer.Option("--id", help="The work order's id.")]
Project = Annotated[str | None, typer.Option(help="The board's project; the repository's name otherwise.")]
Priority = Annotated[int | None, typer.Option(help="From 1 to 5; 3 otherwise, as for impact and effort.")]
Impact = Annotated[int | None, typer.Option(help="From 1 to 5.")]
Effort = Annotated[int | None, typer.Option(help="From 1 to 5. Score = priority + impact - effort.")]
After = Annotated[list[str] | None, typer.Option(metavar="ID", help="A work order that must be over first.")]
AfterUntil = Annotated[
    Literal["merged", "completed", "closed"] | None, typer.Option(help="How far those must be; merged otherwise.")
]
Label = Annotated[list[str] | None, typer.Option(help="A label for the pull request.")]
ApprovePlan = Annotated[bool, typer.Option("--approve-plan", help="Wait for a person after the plan.")]
FollowPr = Annotated[bool, typer.Option("--follow-pr", help="Let the agent answer checks and reviews.")]
Draft = Annotated[bool, typer.Option("--draft", help="Open the pull request as a draft.")]
StepSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--step",
        metavar="STEP.KEY=VALUE",
        help="tools, model, wall_seconds, idle_seconds or turns of one step.",
    ),
]
