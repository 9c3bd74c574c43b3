"""Commands for those who run hosts: workers, servers, what they lack, and hosts that are gone."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from clients.cli import options as given
from clients.cli.grouped_help import Commands
from clients.cli.page_link import show_page_link
from clients.cli.reply import CommandReply, print_json, reply
from clients.cli.wrapping import say
from septet.system.heaps import share_heaps
from septet.system.imports import quick_imports
from septet.system.keys import take_keys_out_of_sight
from septet.system.text import name_some

if TYPE_CHECKING:
    from temporalio.client import Client

    from septet.settings import Settings

app = Commands()

_NAMED: Final = 5


@app.command("host-gone")
def host_gone(
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host's id, as `septet worker` prints it.")],
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Declare a host dead, so that its work orders and pipelines continue elsewhere.

    What its agents did since the last checkpoint may be paid for twice.

    Example: septet host-gone 3f9a2c71d0be
    """

    async def work() -> CommandReply:
        from clients.temporal.hosts import give_up
        from septet.settings import load_settings
        from workers.connection.connection import connect

        told = await give_up(await connect(load_settings(), address=address), host)
        orders, pipelines = told.work_orders, told.pipelines
        names = [*orders, *(f"pipeline {each}" for each in pipelines)]
        show = f"septet show {orders[0]}" if orders else f"septet pipeline show {pipelines[0]}"
        text = (
            f"Host {host} is marked as gone for {', '.join(names)}.\n"
            f"With a checkpoint remote they continue on another host; without one they wait for this one: {show}"
        )
        if told.unanswered:
            text += f"\nNo worker answered for {name_some(told.unanswered, _NAMED)}: repeat the command later."
        return CommandReply({"host": host, **asdict(told)}, lambda: say(text))

    reply(work, as_json=as_json)


@app.command()
def worker(
    register: Annotated[
        bool, typer.Option("--register", help="Only create the namespace and the search attributes.")
    ] = False,
    sandbox: given.Sandbox = None,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Run a worker for a shared Temporal server, until SIGTERM.

    Example: TEMPORAL_ADDRESS=temporal:7233 septet worker
    """
    take_keys_out_of_sight()
    share_heaps()

    async def work() -> CommandReply:
        with quick_imports():
            from septet.settings import load_settings
            from septet.state import StateDir
            from workers.connection.connection import connect
            from workers.observing.logs import set_up_logs
            from workers.server.preflight import check_seal_keys, register_namespace, register_search_attributes

        settings = load_settings(sandbox)
        set_up_logs(settings)
        state = StateDir(settings.state_dir)
        state.prepare()
        identity = f"septet@{state.host_id()}"
        client = await connect(settings, address=address, identity=identity, serves=not register)
        is_made = register and await register_namespace(client)
        names = await register_search_attributes(client)
        payload = {"namespace": client.namespace, "registered": list(names)}
        if not register:
            await check_seal_keys(client, settings.task_queue)
            return await _serve_queue(client, settings, payload, as_json=as_json)
        made = f"Created: namespace {client.namespace}. " if is_made else ""
        text = f"Registered: {', '.join(names)}." if names else "All search attributes are registered."
        return CommandReply({**payload, "namespace_created": is_made}, lambda: say(f"{made}{text}"))

    reply(work, as_json=as_json, is_service=True)


async def _serve_queue(
    client: "Client", settings: "Settings", payload: dict[str, Any], *, as_json: bool
) -> CommandReply:
    with quick_imports():
        from clients.cli.stop_signals import StopSignals, reply_at_stop
        from clients.temporal.comment_decisions import comment_decisions
        from clients.temporal.intakes import intakes_of
        from workers.worker import running_worker

    decide = comment_decisions(settings.task_queue)
    async with running_worker(client, settings, decide=decide, intakes_of=intakes_of) as parts:
        signals = StopSignals.listen()
        ready = {"ok": True, "ready": True, "host": parts.host.id, "task_queue": settings.task_queue, **payload}
        if as_json:
            print_json(ready)
        else:
            where = client.service_client.config.target_host
            say(f"Worker {parts.host.id} serves queue {settings.task_queue!r} at {where}.")
        await signals.first.wait()
    return reply_at_stop(parts.living_agents(), "septet worker")


@app.command()
def serve(
    port: Annotated[
        int, typer.Option(metavar="PORT", help="The port of the page and the HTTP API.", min=1, max=65535)
    ] = 8888,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The address to listen on; in a container, 0.0.0.0.")
    ] = "127.0.0.1",
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Serve the page and the HTTP API, until SIGTERM. `septet up` serves them too.

    Example: septet serve --address temporal:7233
    """
    take_keys_out_of_sight()
    share_heaps()

    async def work() -> CommandReply:
        with quick_imports():
            from clients.cli.stop_signals import StopSignals
            from clients.http.serving import Door, serve_api
            from clients.login_keys import hide_login_keys
            from clients.operations import connect_operations
            from septet.settings import load_settings
            from septet.state import StateDir
            from workers.observing.logs import set_up_logs

        settings = load_settings()
        set_up_logs(settings)
        hide_login_keys(settings)
        state = StateDir(settings.state_dir)
        state.prepare()
        door = Door(port, "--port", host)
        async with serve_api(await connect_operations(settings, address), settings, door) as api:
            signals = StopSignals.listen()
            if as_json:
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

    reply(work, as_json=as_json, is_service=True)


@app.command()
def runner(as_json: given.Json = False) -> None:
    """Start agents for workers that come and go, until SIGTERM.

    Example: septet runner & SEPTET_RUNNER=true septet worker
    """

    async def work() -> CommandReply:
        from septet.agents.sandbox.runner_connection import become_runner, hold_signals, listen, take_lock
        from septet.settings import load_settings
        from septet.state import StateDir

        state = StateDir(load_settings().state_dir)
        state.prepare()
        lock = take_lock(state.runner)
        hold_signals()
        listener = listen(state.runner)
        if as_json:
            print_json({"ok": True, "ready": True, "host": state.host_id(), "state_dir": str(state.root)})
        else:
            say(f"Runner {state.host_id()} starts agents for the workers of {state.root}.")
        sys.stdout.flush()
        become_runner(listener, lock)

    reply(work, as_json=as_json, is_service=True)


@app.command()
def mcp(address: given.Address = None) -> None:
    """Give work orders to an agent as tools, over stdin and stdout (the Model Context Protocol).

    Example: claude mcp add septet -- septet mcp
    """
    take_keys_out_of_sight()
    import signal

    async def work() -> CommandReply:
        with quick_imports():
            from clients.connection import Connection
            from clients.login_keys import hide_login_keys
            from clients.mcp.over_stdio import serve_stdio
            from septet.settings import load_settings
            from workers.observing.logs import set_up_logs

        settings = load_settings()
        set_up_logs(settings)
        hide_login_keys(settings)
        await serve_stdio(Connection(settings, address).operations)
        return CommandReply()

    # Nothing is held that an end could hurt, and Python's own way would wait for a line on stdin first.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    reply(work, as_json=False)


@app.command()
def doctor(
    repo: Annotated[
        str | None, typer.Option(metavar="REPO", help="Look at this repository's commands and settings too.")
    ] = None,
    try_: Annotated[
        str | None,
        typer.Option("--try", metavar="AGENT", help="Only try this agent, with one short turn."),
    ] = None,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Check this machine: what is missing, and how to fix it.

    Example: septet doctor --repo .
    """
    if try_ is None:
        with quick_imports():
            from clients.cli.doctor import check_machine

        reply(lambda: check_machine(repo, address), as_json=as_json)
    else:
        with quick_imports():
            from clients.cli.agent_trial import try_agent

        reply(lambda: try_agent(try_), as_json=as_json)
