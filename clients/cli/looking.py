"""Commands that look at work orders: as tables and text, as JSON, once or as long as they go on."""

from typing import Annotated

import typer

from clients.cli import options as given

app = typer.Typer()


@app.command()
def show(order_id: given.Id, address: given.Address = None, as_json: given.Json = False) -> None:
    """Show one work order.

    Example: septet show wo-42
    """
    from clients.cli import orders

    orders.show(order_id, address=address, as_json=as_json)


@app.command()
def steps(order_id: given.Id, address: given.Address = None, as_json: given.Json = False) -> None:
    """Show the steps of one work order.

    Example: septet steps wo-42 --json
    """
    from clients.cli import orders

    orders.steps(order_id, address=address, as_json=as_json)


@app.command()
def board(
    project: Annotated[str | None, typer.Option(help="Only this project.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show it again when it changes.")] = False,
    after: Annotated[str, typer.Option(metavar="NEXT", help="The `next` of the page before.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The most work orders of a page.")] = 500,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Show the work orders by stage.

    Example: septet board --project o/r --follow
    """
    from clients.cli import orders, watch

    if follow:
        watch.follow_board(project, address=address, as_json=as_json)
    else:
        orders.board(project, after=after, limit=limit, address=address, as_json=as_json)


@app.command("watch")
def watch_(order_id: given.Id, address: given.Address = None, as_json: given.Json = False) -> None:
    """Watch a work order live, until it ends: steps, tool calls, tokens, plan and changes.

    Example: septet watch wo-42
    """
    from clients.cli import watch

    watch.watch(order_id, address=address, as_json=as_json)


@app.command()
def logs(
    order_id: given.Id,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the work order ends.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="The bytes that the agent printed.")] = False,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Show what the agents of a work order said and did.

    Example: septet logs wo-42 --follow
    """
    from clients.cli import logs as implementation

    implementation.logs(order_id, follow=follow, raw=raw, address=address, as_json=as_json)
