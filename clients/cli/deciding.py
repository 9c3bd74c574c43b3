"""Commands by which people decide about a work order; its history says who did."""

from typing import Annotated

import typer

from clients.cli import options as given

app = typer.Typer()

Feedback = Annotated[str, typer.Option(help="What the agent is told as it works again.")]
Plan = Annotated[
    str | None, typer.Option(metavar="SHA256", help="The plan that you read; otherwise the one that waits now.")
]


@app.command()
def move(
    order_id: given.Id,
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="A stage of the board, or cancelled.")],
    why: given.Why = "",
    feedback: Feedback = "",
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Move a work order on the board, where that is allowed; a refusal says where it may move.

    Example: septet move wo-42 triaged --why 'next in line'
    """
    from clients.cli import decisions

    decisions.move(order_id, stage, _said(why, feedback), address=address, as_json=as_json)


@app.command()
def approve(
    order_id: given.Id,
    plan: Plan = None,
    why: given.Why = "",
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Let a work order go on with the plan that it waits with.

    Example: septet approve wo-42
    """
    from clients.cli import decisions

    decisions.approve(order_id, plan, why, address=address, as_json=as_json)


@app.command()
def reject(
    order_id: given.Id,
    feedback: Feedback,
    plan: Plan = None,
    why: given.Why = "",
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Let a work order plan again.

    Example: septet reject wo-42 --feedback 'Round the total, not each item.'
    """
    from clients.cli import decisions

    decisions.reject(order_id, plan, _said(why, feedback), address=address, as_json=as_json)


@app.command()
def cancel(
    order_id: given.Id, why: given.Why = "", address: given.Address = None, as_json: given.Json = False
) -> None:
    """End a work order's agent and keep its work in a rescue.

    Example: septet cancel wo-42
    """
    from clients.cli import decisions

    decisions.cancel(order_id, why, address=address, as_json=as_json)


@app.command()
def retry(
    order_id: given.Id,
    from_step: Annotated[str | None, typer.Option("--from", help="An earlier step to go back to.")] = None,
    why: given.Why = "",
    feedback: Feedback = "",
    wait: given.Wait = False,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Go on with a work order that is closed, at the step that failed; or with one that is held up.

    Example: septet retry wo-42 --from implement_plan
    """
    from clients.cli import decisions

    decisions.retry(order_id, from_step, _said(why, feedback), wait=wait, address=address, as_json=as_json)


def _said(why: str, feedback: str) -> dict[str, str]:
    return {"why": why, "feedback": feedback}
