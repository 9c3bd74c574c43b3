"""A worker, which serves the queue of work orders, its host's queue, and the host's control queue."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Final

from temporalio.client import Client
from temporalio.plugin import SimplePlugin
from temporalio.worker import Worker

from activities.host.host import Host
from activities.intake.comment_commands import Decide, decide_nothing
from activities.intake.issues import IntakesOf, no_intakes
from septet.agents.clis.registry import usable_agents
from septet.forges.choose import hosts_with_key
from septet.settings import Settings
from septet.system.durable import share_lock
from workers.builds.build_id import build_id
from workers.builds.versions import announcing_build, deployment_config
from workers.recovery.attempts import looking_after_attempts, taking_over
from workers.recovery.strays import looking_after_strays
from workers.recovery.tokens import TokenFiles, Tokens
from workers.registry import Parts, openings_at_once, parts_of
from workers.server.preflight import host_services
from workers.slots import agent_slots, workflow_cache
from workers.watching.accounts import FleetAccounts, sharing_forge_pauses
from workers.watching.amount_metrics import measuring_amounts
from workers.watching.announced_agents import AGENT, DEFAULT, FORGE_KEY, METRICS, MODEL, SANDBOX
from workers.watching.heard_hosts import watching_hosts
from workers.watching.pull_request_polls import looking_at_pull_requests
from workers.watching.reports import reporting_health, serving_on_board, telling_costs, telling_left_turns
from workers.watching.schedules import scheduling_janitor, sealing_intakes

HEARTBEAT_THROTTLE: Final = timedelta(seconds=1)
"""The shortest time between heartbeats of an activity: heartbeats are rare, and a requested heartbeat must be sent
soon."""

_STICKY: Final = timedelta(seconds=2)
"""How long a work order waits for the worker that has it in its cache, before another worker replays it. The SDK's
default is 10 s."""

_ANSWERS: Final = 40
"""The most activities of the control queue at a time; agents take none of these slots."""

_GRACE: Final = timedelta(seconds=3)
"""How long a stopping worker waits for its activities; agents continue under their supervisors."""


class _Announcement(SimplePlugin):
    """A plugin without effect, whose name the server shows with the worker."""


def announcements(host: Host) -> list[SimplePlugin]:
    """Return the plugins by which a starting worker announces the agents that its host can use."""
    names = [f"{AGENT}{name}" for name in usable_agents(host.agents, host.state.root)]
    others = [f"{DEFAULT}{host.settings.agent}", f"{SANDBOX}{host.sandbox.kind}"]
    others += [f"{MODEL}{host.settings.model}"] if host.settings.model else []
    others += [METRICS] if host.settings.metrics is not None else []
    others += [FORGE_KEY, *(f"{FORGE_KEY}{each}" for each in hosts_with_key(host.settings))]
    return [_Announcement(name) for name in (*names, *others)]


@asynccontextmanager
async def running_worker(
    client: Client,
    settings: Settings,
    *,
    sole: bool = False,
    decide: Decide = decide_nothing,
    intakes_of: IntakesOf = no_intakes,
) -> AsyncIterator[Parts]:
    """Serve work orders while the block runs, and yield the worker's parts; agents continue after the block.

    Args:
        client: The client; its plugin is `SeptetPlugin` with the queue of the settings.
        sole: Whether this worker alone decides which build runs this server's work orders.
    """
    async with AsyncExitStack() as stack:
        accounts = FleetAccounts(client, settings.task_queue)
        made = parts_of(settings, await host_services(client), decide, accounts, intakes_of)
        parts = await stack.enter_async_context(made)
        stack.enter_context(share_lock(parts.host.state.worker_lock))
        asyncio.get_running_loop().set_default_executor(parts.host.threads.looks)
        await stack.enter_async_context(sharing_forge_pauses(accounts))
        tokens = Tokens(TokenFiles(parts.host.state.tokens))
        stack.callback(tokens.files.close)
        await stack.enter_async_context(taking_over(client, tokens.files.folder, parts.host.runs))
        await stack.enter_async_context(looking_after_strays(client, parts.host))
        await stack.enter_async_context(telling_left_turns(parts.host))
        await stack.enter_async_context(telling_costs(client, parts.host))
        await stack.enter_async_context(looking_after_attempts(client, parts.host.attempts))
        build = build_id(settings)  # the SDK hashes all modules instead, for a tenth of a second
        new_worker = partial(
            Worker,
            client,
            interceptors=[tokens],
            graceful_shutdown_timeout=_GRACE,
            max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
            default_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        )
        await stack.enter_async_context(
            new_worker(
                task_queue=settings.task_queue,
                activities=[] if settings.drain else list(parts.shared.values()),
                max_concurrent_activities=openings_at_once(settings),
                max_concurrent_activity_task_polls=1,  # else hosts would not take turns: the oldest poll is served
                deployment_config=deployment_config(settings),
                **workflow_cache(settings),
                sticky_queue_schedule_to_start_timeout=_STICKY,
            )
        )
        await stack.enter_async_context(
            new_worker(
                task_queue=parts.host.task_queue,
                activities=list(parts.own.values()),
                build_id=build,
                **agent_slots(settings),
            )
        )
        await stack.enter_async_context(
            new_worker(
                task_queue=parts.host.control_queue,
                activities=list(parts.control.values()),
                plugins=announcements(parts.host),
                build_id=build,
                max_concurrent_activities=_ANSWERS,
            )
        )
        heard = await stack.enter_async_context(watching_hosts(client, parts.host))
        await stack.enter_async_context(measuring_amounts(client, settings, parts.host.state, heard))
        await stack.enter_async_context(reporting_health(client, parts.host))
        await stack.enter_async_context(announcing_build(client, settings, sole=sole))
        await stack.enter_async_context(scheduling_janitor(client, settings, parts.host.id, parts.host.task_queue))
        await stack.enter_async_context(sealing_intakes(client, settings.task_queue))
        await stack.enter_async_context(serving_on_board(client, settings, parts.host.id))
        await stack.enter_async_context(looking_at_pull_requests(client, parts.host))
        yield parts
