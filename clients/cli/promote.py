"""`septet promote`: which build gets work orders."""

from typing import Annotated, Final

from pydantic import Field

from clients.cli.options import argument, option
from clients.cli.reply import CommandReply
from clients.cli.server import SERVER, Server
from clients.cli.wrapping import say
from septet.settings import load_settings
from workers.builds.promotion import Promotion, PromotionCall
from workers.builds.promotion import promote as promote_build
from workers.connection.connection import connect

_ALL: Final = 100

Build = Annotated[str | None, argument(metavar="BUILD", help="The build. [default: this installation's]")]
Ramp = Annotated[
    Annotated[float, Field(ge=0, le=100)] | None,
    option(metavar="PERCENT", help="Only this percentage of the work orders; 0 ends a ramp."),
]
Within = Annotated[
    float, Field(ge=0), option(metavar="SECONDS", help="How long to wait for a worker of the build.")
]


async def promote(
    build: Build = None,
    /,
    *,
    ramp: Ramp = None,
    within: Within = 90.0,
    force: Annotated[
        bool, option("--force", help="Promote even if running work orders then have to wait.")
    ] = False,
    server: Server = SERVER,
) -> CommandReply:
    """Choose the workers' build that gets the work orders of a shared server."""
    settings = load_settings()
    call = PromotionCall(build=build, ramp=ramp, force=force, within_seconds=within)
    done = await promote_build(await connect(settings, address=server.address), settings, call)
    payload = {
        "build": done.build,
        "before": done.before,
        "percentage": done.percentage,
        "waiting": list(done.waiting),
    }
    return CommandReply(payload, lambda: _show_promotion(done))


def _show_promotion(promotion: Promotion) -> None:
    share = f"{promotion.percentage:g} % of the work orders" if promotion.percentage < _ALL else "all work orders"
    say(f"Build {promotion.build or 'unversioned'} gets {share}; before it was {promotion.before or 'none'}.")
    if promotion.waiting:
        say(f"These wait until a build with their patches is promoted: {', '.join(promotion.waiting)}.")
