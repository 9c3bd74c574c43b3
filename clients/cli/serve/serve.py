"""`septet serve`: the page and the HTTP API, without a worker."""

from clients.cli.serve.options import ServeOptions
from clients.cli.terminal.output import print_json, say
from clients.cli.terminal.reply import CommandReply
from clients.cli.terminal.serving import StopSignals, hide_login_keys, show_page_link
from clients.http.serving import Door, serve_api
from septet.settings import load_settings
from septet.state import StateDir
from workers.observing.logs import set_up_logs


async def serve(options: ServeOptions) -> CommandReply:
    """Serve the page and the HTTP API, until SIGTERM. `septet up` serves them too."""
    settings = load_settings()
    set_up_logs(settings)
    hide_login_keys(settings)
    state = StateDir(settings.state_dir)
    state.prepare()
    door = Door(options.port, "--port", options.host)
    async with serve_api(await options.server.connect(), settings, door) as api:
        signals = StopSignals.listen()
        if options.server.as_json:
            codec = {"codec": api.codec_address} if api.codec_address else {}
            ready = {"ok": True, "ready": True, "api": api.address, "page": api.page, **codec}
            print_json({**ready, "state_dir": str(state.root)})
        else:
            say(f"The API is at {api.address}; its token is in {state.api_token_file}.")
            show_page_link(api.page)
            if api.codec_address:
                say(f"The codec endpoint, for Temporal's web UI in your browser: {api.codec_address}")
        await signals.first.wait()
    return CommandReply(is_printed=True)
