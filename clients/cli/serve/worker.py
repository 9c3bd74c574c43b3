"""`septet worker`: a worker for a shared Temporal server."""

from typing import Any

from temporalio.client import Client

from clients.cli.serve.options import WorkerOptions
from clients.cli.terminal.output import print_json, say
from clients.cli.terminal.reply import CommandReply
from clients.cli.terminal.serving import StopSignals, reply_at_stop
from clients.temporal.comment_commands import comment_decisions
from clients.temporal.intakes import intakes_of
from septet.settings import Settings, load_settings
from septet.state import StateDir
from workers.connection.connection import connect, reading_options
from workers.connection.plugin import serving_options
from workers.observing.logs import set_up_logs
from workers.server.preflight import check_seal_keys, register_namespace, register_search_attributes
from workers.worker import running_worker


async def worker(options: WorkerOptions) -> CommandReply:
    """Run a worker for a shared Temporal server, until SIGTERM."""
    settings = load_settings(options.sandbox)
    set_up_logs(settings)
    state = StateDir(settings.state_dir)
    state.prepare()
    identity, address = f"septet@{state.host_id()}", options.server.address
    kind = reading_options if options.register else serving_options
    client = await connect(settings, address=address, identity=identity, options=kind)
    is_made = options.register and await register_namespace(client)
    names = await register_search_attributes(client)
    payload = {"namespace": client.namespace, "registered": list(names)}
    if not options.register:
        await check_seal_keys(client, settings.task_queue)
        return await _serve_queue(client, settings, payload, as_json=options.server.as_json)
    made = f"Created: namespace {client.namespace}. " if is_made else ""
    text = f"Registered: {', '.join(names)}." if names else "All search attributes are registered."
    return CommandReply({**payload, "namespace_created": is_made}, lambda: say(f"{made}{text}"))


async def _serve_queue(
    client: Client, settings: Settings, payload: dict[str, Any], *, as_json: bool
) -> CommandReply:

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
