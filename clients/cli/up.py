"""`septet up`: server, web UI, worker and HTTP API in one terminal."""

import asyncio
from importlib import import_module
from typing import Final

import typer

from clients.cli.reply import CommandReply, print_json
from clients.cli.stop_signals import StopSignals, reply_at_stop
from clients.operations import Operations
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import SandboxChoice
from septet.settings import load_settings
from septet.state import StateDir
from workers.connection import connect
from workers.logs import set_up_logs
from workers.server import Ports, ServerFile, embedded_server

_WHY_ENDED: Final = "a person ended `septet up` with its agents"


async def serve_everything(ports: Ports, sandbox: SandboxChoice | None, *, as_json: bool) -> CommandReply:
    """Run all of Septet on this machine until Ctrl-C; agents live on."""
    from workers.strays import end_living
    from workers.worker import running_worker

    settings = load_settings(sandbox)
    set_up_logs(settings)
    state = StateDir(settings.state_dir)
    http = asyncio.create_task(asyncio.to_thread(import_module, "clients.http.serving"))
    async with embedded_server(state, ports, settings.git_env) as server:
        client = await connect(settings, address=server.address, identity=f"septet@{state.host_id()}")
        operations = Operations(WorkOrders(client, settings.task_queue), state, settings.git_env)
        async with running_worker(client, settings, sole=True) as parts:
            async with (await http).serve_api(operations, settings, ports.api, "--api-port") as api:
                signals = StopSignals.listen()
                _print_ready(server, state, api.page, as_json=as_json)
                await signals.first.wait()
            if parts.living_agents():
                typer.echo("Agents live on. Ctrl-C again ends them now, with a rescue.", err=True)
        if signals.second.is_set():
            for run in await end_living(parts.host, _WHY_ENDED):
                typer.echo(f"Agent {run} was ended; the next `septet up` resumes its session.", err=True)
        living = parts.living_agents()
    return reply_at_stop(living)


def _print_ready(server: ServerFile, state: StateDir, page: str, *, as_json: bool) -> None:
    if as_json:
        where = {"address": server.address, "ui": server.ui, "api": server.api, "page": page}
        print_json({"ok": True, "ready": True, **where, "state_dir": str(state.root)})
        return
    typer.echo(f"Septet is up: server {server.address}, web UI {server.ui}, API {server.api}, state {state.root}.")
    typer.echo(f"The page, for your browser: {page}")
    typer.echo(
        "Start a work order in another terminal: septet run --repo . --title 'What is wrong' --body 'Where'"
    )
    typer.echo("Ctrl-C stops server and worker; agents live on, unless it is pressed twice.")
