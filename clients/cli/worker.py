"""`septet worker`: serve work orders of a shared Temporal server."""

import asyncio
import signal
from dataclasses import dataclass, field
from typing import Any, Self

import typer
from temporalio.client import Client

from clients.cli.reply import Reply, print_json, reply
from septet.contracts.names import SandboxChoice
from septet.settings import Settings, load_settings
from septet.state import StateDir
from workers.connection import connect
from workers.logs import set_up_logs
from workers.preflight import register_search_attributes


def worker(*, register: bool, sandbox: SandboxChoice | None, address: str | None, as_json: bool) -> None:
    """Register the search attributes, then serve until SIGTERM or Ctrl-C."""

    async def work() -> Reply:
        settings = load_settings(sandbox)
        set_up_logs(settings)
        state = StateDir(settings.state_dir)
        state.prepare()
        client = await connect(settings, address=address, identity=f"septet@{state.host_id()}")
        registered = await register_search_attributes(client)
        payload: dict[str, Any] = {"namespace": client.namespace, "registered": list(registered)}
        if register:
            return Reply(payload, lambda: _say_registered(registered))
        return await _serve(client, settings, payload, as_json=as_json)

    reply(work, as_json=as_json)


async def _serve(client: Client, settings: Settings, payload: dict[str, Any], *, as_json: bool) -> Reply:
    from workers.worker import running_worker

    async with running_worker(client, settings) as parts:
        stop = Stop.heard()
        ready = {"ok": True, "ready": True, "host": parts.host_id, "task_queue": settings.task_queue, **payload}
        if as_json:
            print_json(ready)
        else:
            where = client.service_client.config.target_host
            typer.echo(f"Worker {parts.host_id} serves queue {settings.task_queue!r} at {where}.")
        await stop.asked.wait()
    return stopped(parts.living_agents())


@dataclass(frozen=True, slots=True)
class Stop:
    """What SIGTERM and SIGINT ask of a program that serves; to be heard before anybody learns that it is ready."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    again: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by a SIGINT after the first word."""

    @classmethod
    def heard(cls) -> Self:
        """Hear both signals from now on."""
        stop = cls()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stop.asked.set)
        loop.add_signal_handler(signal.SIGINT, stop._interrupted)
        return stop

    def _interrupted(self) -> None:
        (self.again if self.asked.is_set() else self.asked).set()


def stopped(living: list[str]) -> Reply:
    """Name the agents that live on under their supervisors, on stderr: stdout has had its answer."""
    for run in living:
        typer.echo(f"Agent {run} lives on; the next worker of this host takes it over.", err=True)
    return Reply(told=True)


def _say_registered(names: tuple[str, ...]) -> None:
    typer.echo(f"Registered: {', '.join(names)}." if names else "All search attributes are registered.")
