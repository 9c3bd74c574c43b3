"""The host of a day of work: a model, a Temporal server and a worker during a block."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fakes.guest_paths import guest_paths
from fakes.model_day import Day
from fakes.model_stub import Model, serving
from fakes.septet_command import free_ports

from clients.temporal.work_orders import WorkOrders
from septet.agents.runs.folders import Runs
from septet.agents.turns.end_of_turn import end_all
from septet.forges.local.forge import LocalForge
from septet.sample import make_sample
from septet.settings import Settings
from septet.state import StateDir
from workers.connection.connection import connect
from workers.connection.plugin import serving_options
from workers.server.ports import Ports
from workers.server.server import embedded_server
from workers.worker import running_worker


@asynccontextmanager
async def serving_day(day: Day) -> AsyncIterator[WorkOrders]:
    """Serve a model, a Temporal server and a worker during the block, and stop all agents at its end."""
    model: Model = day.model
    with serving(model) as address:
        settings = Settings(
            state_dir=day.root / "state",
            agent=day.cli,
            sandbox=day.sandbox,
            sandboxed=day.sandboxed,
            read_outgoing=day.read_outgoing,
            guest_paths=guest_paths(day.root),
            environ=day.environment(address),
            log_level="error",
        )
        state = StateDir(settings.state_dir)
        state.prepare()
        sample = make_sample(
            day.root / "sample",
            lambda origin, title, body: LocalForge(origin, settings.git_env).add_issue(title, body).number,
            settings.git_env,
        )
        day.opened(sample, Runs(state.runs))
        async with embedded_server(state, Ports(*free_ports(2)), settings.server_env) as server:
            client = await connect(settings, address=server.address, options=serving_options)
            async with running_worker(client, settings):
                try:
                    yield WorkOrders(client, settings.task_queue)
                finally:
                    for order_id in day.runs.orders():
                        await end_all(day.runs, order_id, "cancelled")
