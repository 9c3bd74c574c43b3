"""`septet promote`: which build gets work orders."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from clients.cli import options as given
from clients.cli.grouped_help import Commands
from clients.cli.reply import CommandReply, reply
from clients.cli.wrapping import say

if TYPE_CHECKING:
    from workers.builds.promotion import Promotion

app = Commands()
_ALL: Final = 100

Build = Annotated[str | None, typer.Argument(metavar="BUILD", help="The build. [default: this installation's]")]
Ramp = Annotated[
    float | None,
    typer.Option(
        metavar="PERCENT", help="Only this percentage of the work orders; 0 ends a ramp.", min=0, max=100
    ),
]
Within = Annotated[
    float, typer.Option(metavar="SECONDS", help="How long to wait for a worker of the build.", min=0)
]


@app.command()
def promote(
    build: Build = None,
    ramp: Ramp = None,
    within: Within = 90.0,
    force: Annotated[
        bool, typer.Option("--force", help="Promote even if running work orders then have to wait.")
    ] = False,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Choose the workers' build that gets the work orders of a shared server.

    Example: septet promote --ramp 10
    """

    async def work() -> CommandReply:
        from septet.settings import load_settings
        from workers.builds.promotion import PromotionCall
        from workers.builds.promotion import promote as promote_build
        from workers.connection.connection import connect

        settings = load_settings()
        call = PromotionCall(build=build, ramp=ramp, force=force, within_seconds=within)
        done = await promote_build(await connect(settings, address=address), settings, call)
        payload = {
            "build": done.build,
            "before": done.before,
            "percentage": done.percentage,
            "waiting": list(done.waiting),
        }
        return CommandReply(payload, lambda: _show_promotion(done))

    reply(work, as_json=as_json)


def _show_promotion(promotion: "Promotion") -> None:
    share = f"{promotion.percentage:g} % of the work orders" if promotion.percentage < _ALL else "all work orders"
    say(f"Build {promotion.build or 'unversioned'} gets {share}; before it was {promotion.before or 'none'}.")
    if promotion.waiting:
        say(f"These wait until a build with their patches is promoted: {', '.join(promotion.waiting)}.")
