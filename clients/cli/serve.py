"""`septet serve`: the HTTP API, for work orders of a Temporal server that runs elsewhere."""

import typer

from clients.api_token import api_token
from clients.cli.reply import Reply, print_json, reply
from clients.cli.worker import Stop
from clients.operations import connected
from clients.page.key import page_link
from septet.settings import load_settings
from septet.state import StateDir
from workers.logs import set_up_logs


def serve(*, port: int, address: str | None, as_json: bool) -> None:
    """Serve the HTTP API until SIGTERM or Ctrl-C."""

    async def work() -> Reply:
        from clients.http.serving import serving

        settings = load_settings()
        set_up_logs(settings)
        state = StateDir(settings.state_dir)
        state.prepare()
        async with serving(await connected(settings, address), settings, port, "--port") as api:
            page = page_link(api, api_token(settings))
            stop = Stop.heard()
            if as_json:
                print_json({"ok": True, "ready": True, "api": api, "page": page, "state_dir": str(state.root)})
            else:
                typer.echo(f"The API is at {api}; its token is in {state.api_token_file}.")
                typer.echo(f"The page, for your browser: {page}")
            await stop.asked.wait()
        return Reply(told=True)

    reply(work, as_json=as_json)
