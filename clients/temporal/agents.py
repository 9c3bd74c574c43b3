"""Whether the living workers can use an agent: told before a work order starts, in the words of its failure."""

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

from temporalio.client import ActivityFailureError, Client
from temporalio.common import RetryPolicy
from temporalio.service import RPCError

from septet.contracts.agents import AgentAnswer, AgentQuestion
from septet.contracts.task import TaskError
from septet.errors import AgentMissingError
from septet.git.engine.address import parse_address
from workers.watching.announced_agents import AnnouncedAgents, announced_agents

_ANSWERED_WITHIN: Final = timedelta(seconds=3)
_ASK: Final = "check_agent"


async def worker_agents(client: Client, task_queue: str) -> Sequence[AnnouncedAgents]:
    """Return what the living workers have announced; nothing where one of them, or the server, does not tell."""
    with suppress(RPCError):
        return await announced_agents(client, task_queue) or ()
    return ()


async def check_worker_agents(
    client: Client, hosts: Sequence[AnnouncedAgents], names: Iterable[str | None]
) -> None:
    """Refuse agents that no living worker can use; `None` is a worker's default.

    Only where what workers announced as they started speaks against an agent are they asked, for its program may
    have been installed since. Where workers do not tell, and where none lives, nothing is refused: the work order
    says it once a worker has it.

    Raises:
        AgentMissingError: None of them can use it; message and remedy are a worker's own.
    """
    if not hosts:
        return
    for name in dict.fromkeys(names):
        if not any((name or host.default) in host.agents for host in hosts):
            await _refuse(client, hosts, name)


def check_forge_key(hosts: Sequence[AnnouncedAgents], repository: str) -> None:
    """Refuse a repository for whose forge no living worker has a key; where one does not tell, nothing is refused.

    Raises:
        InvalidInputError: None of them has a key.
    """
    address = parse_address(repository, home=Path.home())
    keys = [host.forge_keys for host in hosts]
    if address.path is None and keys and not any(each is None or address.host in each for each in keys):
        from septet.forges.choose import no_key_for

        raise no_key_for(address.host)


async def _refuse(client: Client, hosts: Sequence[AnnouncedAgents], name: str | None) -> None:
    """Ask the hosts themselves, and refuse where none of them can use the agent now."""
    answers = await asyncio.gather(*(_ask(client, host, name) for host in hosts))
    errors = [answer.error for answer in answers if answer is not None]
    if None in errors:
        return
    error = next((each for each in errors if each is not None), None) or _error_of(hosts, name)
    raise AgentMissingError(f"agent: {error.message}", remedy=error.remedy)


async def _ask(client: Client, host: AnnouncedAgents, name: str | None) -> AgentAnswer | None:
    """Return what a host answers; `None` where it does not, because it is gone or its server has no such calls."""
    try:
        answer: AgentAnswer = await client.execute_activity(
            _ASK,
            AgentQuestion(agent=name),
            id=f"septet-check-agent-{secrets.token_hex(8)}",
            task_queue=host.control_queue,
            result_type=AgentAnswer,
            schedule_to_close_timeout=_ANSWERED_WITHIN,
            retry_policy=RetryPolicy(maximum_attempts=1),
        )
    except (ActivityFailureError, RPCError):
        return None
    return answer


def _error_of(hosts: Sequence[AnnouncedAgents], name: str | None) -> TaskError:
    """Return why an agent cannot be used, as far as its workers have announced it."""
    agent = name or hosts[0].default
    others = ", ".join(sorted(set().union(*(host.agents for host in hosts)))) or "none"
    return TaskError(
        type="AgentMissing",
        message=f"No worker can use the agent {agent}.",
        remedy=f"Install it where a worker runs. Agents that the workers can use: {others}.",
    )


def first_agent(agents: Sequence[str | None], hosts: Sequence[AnnouncedAgents]) -> str:
    """Return the agent that a work order gets: its own, else the default of a living worker, else nothing."""
    return next(iter(agents), None) or (hosts[0].default if hosts else "")
