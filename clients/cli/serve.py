"""`septet serve`: the page and the HTTP API on their own."""

from typing import Annotated

from clients.cli import options as given
from clients.cli.options import option
from clients.cli.page_link import show_page_link
from clients.cli.reply import CommandReply, print_json
from clients.cli.server import SERVER, Server
from clients.cli.stop_signals import StopSignals
from clients.cli.wrapping import say
from clients.http.serving import Door, serve_api
from clients.login_keys import hide_login_keys
from septet.settings import load_settings
from septet.state import StateDir
from workers.observing.logs import set_up_logs


async def serve(
    *,
    port: given.ApiPort = 8888,
    host: Annotated[
        str, option(metavar="ADDRESS", help="The address to listen on; in a container, 0.0.0.0.")
    ] = "127.0.0.1",
    server: Server = SERVER,
) -> CommandReply:
    """Serve the page and the HTTP API, until SIGTERM. `septet up` serves them too."""
    settings = load_settings()
    set_up_logs(settings)
    hide_login_keys(settings)
    state = StateDir(settings.state_dir)
    state.prepare()
    door = Door(port, "--port", host)
    async with serve_api(await server.connect(), settings, door) as api:
        signals = StopSignals.listen()
        if server.as_json:
            print_json(
                {
                    "ok": True,
                    "ready": True,
                    "api": api.address,
                    "page": api.page,
                    **({"codec": api.codec_address} if api.codec_address else {}),
                    "state_dir": str(state.root),
                }
            )
        else:
            say(f"The API is at {api.address}; its token is in {state.api_token_file}.")
            show_page_link(api.page)
            if api.codec_address:
                say(f"The codec endpoint, for Temporal's web UI in your browser: {api.codec_address}")
        await signals.first.wait()
    return CommandReply(is_printed=True)
