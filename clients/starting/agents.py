"""Check, before a work order starts, that a running worker can use the work order's agent."""

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

from temporalio.client import ActivityFailureError, Client
from temporalio.common import RetryPolicy
from temporalio.service import RPCError

from clients.starting.checks import read_settings
from septet.contracts.names import SETTINGS_PATH
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import TaskError
from septet.contracts.workspace import AgentAnswer, AgentQuestion
from septet.errors import AgentMissingError, GitError, InvalidInputError, RepositorySettingsError
from septet.git.engine.address import parse_address
from septet.git.engine.engine import Git
from septet.git.engine.objects import read_files_at
from septet.git.workspace.mirror import find_base
from workers.watching.announced_agents import AnnouncedAgents, announced_agents

_ANSWERED_WITHIN: Final = timedelta(seconds=3)


async def worker_agents(client: Client, task_queue: str) -> Sequence[AnnouncedAgents]:
    """Return the agents that each running worker announced; empty if any worker or the server reports none."""
    with suppress(RPCError):
        return await announced_agents(client, task_queue) or ()
    return ()


async def check_worker_agents(
    client: Client, hosts: Sequence[AnnouncedAgents], names: Iterable[str | None]
) -> None:
    """Refuse agents that no running worker can use; `None` means a worker's default agent.

    If an agent is in no announcement, the workers are queried, because the agent may have been installed since.
    If there are no announcements at all, no agent is refused.

    Raises:
        AgentMissingError: No running worker can use the agent; the message and the remedy come from a worker.
    """
    if not hosts:
        return
    for name in dict.fromkeys(names):
        if not any((name or host.default) in host.agents for host in hosts):
            await _refuse(client, hosts, name)


def check_forge_key(hosts: Sequence[AnnouncedAgents], repository: str) -> None:
    """Refuse a repository if all running workers report their keys, but none has a key for the forge.

    Raises:
        InvalidInputError: No running worker has a key.
    """
    address = parse_address(repository, home=Path.home())
    keys = [host.forge_keys for host in hosts]
    if address.path is None and keys and not any(each is None or address.host in each for each in keys):
        from septet.forges.choose import no_key_for

        raise no_key_for(address.host)


async def _refuse(client: Client, hosts: Sequence[AnnouncedAgents], name: str | None) -> None:
    """Query the workers, and raise an error unless one of them can use the agent now."""
    answers = await asyncio.gather(*(_ask(client, host, name) for host in hosts))
    errors = [answer.error for answer in answers if answer is not None]
    if None in errors:
        return
    error = next((each for each in errors if each is not None), None)
    if error is None:  # no host answered
        others = ", ".join(sorted(set().union(*(host.agents for host in hosts)))) or "none"
        remedy = f"Install it where a worker runs. Agents that the workers can use: {others}."
        message = f"No worker can use the agent {name or hosts[0].default}."
        error = TaskError(type="AgentMissing", message=message, remedy=remedy)
    raise AgentMissingError(f"agent: {error.message}", remedy=error.remedy)


async def _ask(client: Client, host: AnnouncedAgents, name: str | None) -> AgentAnswer | None:
    """Query a worker, and return whether the worker can use an agent; `None` without an answer."""
    try:
        answer: AgentAnswer = await client.execute_activity(
            "check_agent",
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


def first_agent(agents: Sequence[str | None], hosts: Sequence[AnnouncedAgents]) -> str:
    """Return the first agent that `agents` names, else a running worker's default agent, else an empty name."""
    return next(iter(agents), None) or (hosts[0].default if hosts else "")


def agents_asked_for(
    order: WorkOrderInput, git_env: Mapping[str, str], *, is_here: bool
) -> tuple[str | None, ...]:
    """Return a tuple with the work order's agent, or else the agent that its repository's settings name.

    `None` in the tuple stands for the worker's default agent. The tuple is empty if the order names no agent and
    the repository is elsewhere. For a repository on this disk, base, issue and settings are checked.

    Raises:
        NotFoundError: The base branch or the issue does not exist; the message names it.
        InvalidInputError: The repository has no commit yet, or its settings are wrong; the message names the line.
    """
    path = parse_address(order.repository, home=Path.home()).path if is_here else None
    own = _default_agent(path, order, git_env) if path is not None else None
    if order.agent is not None:
        return (order.agent,)
    return () if path is None else (own,)


def _default_agent(path: Path, order: WorkOrderInput, git_env: Mapping[str, str]) -> str | None:
    if order.issue is not None:
        from septet.forges.local.forge import LocalForge

        LocalForge(path, git_env).issue(order.issue)
    git_dir = path / ".git" if (path / ".git").exists() else path
    try:
        base = find_base(git_dir, git_env, order.base)
        files = read_files_at(Git(git_dir, env=git_env), base.sha, (SETTINGS_PATH,))
    except GitError:
        return None  # the worker reports the cause when it opens the workspace
    if not files:
        return None
    try:
        return read_settings(files).agent
    except RepositorySettingsError as error:
        remedy = f"{error.remedy} Commit the correction to {base.branch}, then start it again."
        raise InvalidInputError(error.message, remedy=remedy) from error
