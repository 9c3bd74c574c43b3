"""The dry run of a work order: what would run, according to the base commit and the running workers.

A dry run starts nothing. It reads a repository on this disk directly, and mirrors a remote repository in a
temporary folder.
"""

import asyncio
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from temporalio.service import RPCError

from clients.operations.operations import Operations
from clients.starting.checks import find_unused_settings
from septet.budgets.account import DAY, PROJECT
from septet.commands.command import load, overrides
from septet.contracts.names import SETTINGS_PATH, IssueClass, Step
from septet.contracts.order import StepSettings, WorkOrderInput
from septet.contracts.replies import DryRunReply, DryRunStep
from septet.errors import NotFoundError, ServerNotReachedError
from septet.forges.choose import token_for
from septet.git.engine.address import Address, parse_address
from septet.git.engine.configuration import write_configuration
from septet.git.engine.engine import Git
from septet.git.engine.objects import read_files_at
from septet.git.engine.remote import Remote
from septet.git.workspace.mirror import Base, find_base, refresh_mirror
from septet.repository_file import load_repository_settings
from septet.repository_settings import RepositorySettings
from septet.settings import Settings
from workers.watching.announced_agents import AnnouncedAgents, announced_agents


async def dry_run(
    operations: Operations, order: WorkOrderInput, order_id: str | None, settings: Settings, *, again: bool
) -> DryRunReply:
    """Check a new work order without starting it, and return its steps, settings and estimated cost.

    Raises:
        SeptetError: The work order would be refused, or its repository cannot be read.
    """
    order = await operations.starting.prepare(order, order_id, again=again)
    address = parse_address(order.repository, home=Path.home())
    base, files = await asyncio.to_thread(_read_base, address, order.base, settings)
    repository = load_repository_settings(files.get)
    hosts: Sequence[AnnouncedAgents] = ()
    with suppress(RPCError):
        hosts = await announced_agents(operations.client, operations.task_queue) or ()
    worker = next(iter(hosts), None)
    agent = order.agent or repository.agent or (worker.default if worker is not None else settings.agent)
    model = worker.model if worker is not None else settings.model
    read = files.get(SETTINGS_PATH)
    unused = find_unused_settings(address.path, read, base.branch) if address.path else None
    all_steps = list(Step)
    steps = all_steps[: all_steps.index(Step.FIND_PLAN_FILE) + 1] if order.plan_only else all_steps
    return DryRunReply(
        unused_settings=" ".join(unused or ()),
        repository=address.url,
        base_branch=base.branch,
        base_sha=base.sha,
        issue_number=str(order.issue or ""),
        title=order.title or "",
        agent=agent,
        sandbox=worker.sandbox if worker is not None else "",
        approve_plan=order.approve_plan,
        plan_only=order.plan_only,
        setup=tuple(" ".join(command) for command in repository.setup),
        setup_seconds=repository.setup_seconds,
        checks=tuple(" ".join(check) for check in repository.checks),
        check_seconds=repository.check_seconds,
        steps=tuple(_step(step, order, repository, files, (agent, model)) for step in steps),
        budgets=await _budgets(operations, order, repository, settings, order.project or address.project),
        estimate=await operations.starting.estimate(order.model_copy(update={"agent": agent})),
    )


async def _budgets(
    operations: Operations, order: WorkOrderInput, repository: RepositorySettings, settings: Settings, project: str
) -> dict[str, str]:
    """Return the limits of the budgets of the work order, its project and the day; omit missing limits."""
    own = repository.budget_for(order.budget or settings.order_budget or "")
    limits = {"work order": str(own or "")}
    for scope, by_settings in ((f"{PROJECT}/{project}", settings.project_budget), (DAY, settings.day_budget)):
        try:
            limits[scope] = (await operations.budgets.show(scope)).budget.limit
        except (NotFoundError, ServerNotReachedError):
            limits[scope] = by_settings or ""
    return {scope: limit for scope, limit in limits.items() if limit}


def _step(
    step: Step,
    order: WorkOrderInput,
    repository: RepositorySettings,
    files: Mapping[str, bytes],
    agent_and_default: tuple[str, str | None],
) -> DryRunStep:
    """Return a step as a dry run shows it; `agent_and_default` has the agent and the worker's default model."""
    own = order.steps.get(step, StepSettings())
    limits = repository.limits_for(step, own.over(order.timeouts), own)
    classes = tuple(IssueClass) if step is Step.BUILD_PLAN else (None,)
    commands = [load(step, issue_class, files.get) for issue_class in classes]
    return DryRunStep(
        step=step.value,
        agent=agent_and_default[0],
        model=repository.model_for(step, order.model, own, agent_and_default[1]),
        tools=repository.tools_for(step, own),
        wall_seconds=limits.wall_seconds,
        idle_seconds=limits.idle_seconds,
        turns=limits.turns,
        commands=tuple(command.place for command in commands),
        built_in=all(command.built_in for command in commands),
    )


def _read_base(address: Address, base: str | None, settings: Settings) -> tuple[Base, Mapping[str, bytes]]:
    paths = (*overrides(), SETTINGS_PATH)
    with _git_dir(address, settings) as (git_dir, env):
        if address.path is not None:
            found = find_base(git_dir, env, base)
        else:
            found = refresh_mirror(git_dir, Remote(address.url, env, token_for(address, settings)), base)
        return found, read_files_at(Git(git_dir, env=env), found.sha, paths)


@contextmanager
def _git_dir(address: Address, settings: Settings) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """Yield the git folder, or for a remote repository the path of the mirror to make; and git's environment."""
    with tempfile.TemporaryDirectory(prefix="septet-dry-run-") as folder:
        env = {**settings.git_env, "GIT_CONFIG_GLOBAL": str(Path(folder) / "gitconfig")}
        write_configuration(Path(folder) / "gitconfig", settings.user_git_env)
        if address.path is None:
            yield Path(folder) / "mirror.git", env
        else:
            yield (address.path / ".git" if (address.path / ".git").exists() else address.path), env
