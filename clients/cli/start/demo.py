"""`septet demo`: run one work order on a sample repository, with a separate server and worker."""

import asyncio
import shlex
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.live import Live
from rich.text import Text

from clients.cli.doctor.machine_checks import check_scenario
from clients.cli.render.task_reply import WorkOrderFailedError
from clients.cli.render.work_order import show_task, task_view
from clients.cli.start.options import DemoOptions
from clients.cli.terminal.console import console
from clients.cli.terminal.reply import CommandReply
from clients.cli.terminal.serving import StopSignals, septet_here
from clients.temporal.work_orders import WorkOrders
from septet.agents.clis.adapter import Machine, Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.endings import RESTARTED
from septet.agents.runs.folders import Runs
from septet.agents.turns.end_of_turn import end_all
from septet.contracts.names import SandboxChoice, Status
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task
from septet.forges.local.forge import LocalForge
from septet.git.engine.engine import Git
from septet.sample import Sample, make_sample
from septet.settings import Settings, load_settings
from septet.state import StateDir
from septet.system.durable import close_after, take_lock
from workers.connection.connection import connect
from workers.connection.plugin import serving_options
from workers.observing.logs import set_up_logs
from workers.server.ports import Ports, free_port
from workers.server.server import SERVER_LOCK, embedded_server
from workers.server.server_file import ServerFile
from workers.worker import running_worker

_ORDER_ID = "wo-demo"


@dataclass(frozen=True, slots=True)
class _Stage:
    """What the demo runs with: settings, sample repository, work orders and server."""

    settings: Settings
    sample: Sample
    orders: WorkOrders
    server: ServerFile


async def demo(options: DemoOptions) -> CommandReply:
    """Take one work order through all seven steps and show them as they happen."""
    StopSignals.end_start()
    settings = _settings(options.scenario, options.agent, options.sandbox)
    set_up_logs(settings)
    adapter_for(options.agent).invocation(
        Turn(prompt="", worktree=settings.state_dir),
        Machine(settings.environ, settings.agent_programs, sandboxed=settings.sandboxed),
    )
    if options.agent != "scripted" and not options.as_json:
        warning = f"This runs {options.agent} with your own login: it costs money."
        console().print(Text(warning, style="bold yellow"))
    async with _stage(settings) as stage:
        order = WorkOrderInput(repository=str(stage.sample.origin), issue=stage.sample.issue, agent=options.agent)
        await stage.orders.start(order, _ORDER_ID)
        return _answer(stage, await _watch(stage.orders, quiet=options.as_json))


def _settings(scenario: str | None, agent: str, sandbox: SandboxChoice | None) -> Settings:
    """Return the demo's settings: a separate state directory, the scenario, and few logs."""
    settings = load_settings(sandbox)
    environ = dict(settings.environ)
    if scenario is not None:
        check_scenario(scenario, "--scenario")
        environ["SEPTET_SCRIPTED_SCENARIO"] = scenario
    folder = settings.state_dir / "demos" / datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    quiet = {"log_level": "error", "versioning": False, "metrics": None}
    return settings.model_copy(update={"state_dir": folder, "agent": agent, "environ": environ, **quiet})


@asynccontextmanager
async def _stage(settings: Settings) -> AsyncIterator[_Stage]:
    """Run the server and the worker during the block; at the block's end, stop agents that still run."""
    state = StateDir(settings.state_dir)
    await asyncio.to_thread(remove_earlier_demos, state.root.parent)
    state.prepare()

    def add_issue(origin: Path, title: str, body: str) -> int:
        return LocalForge(origin, settings.git_env).add_issue(title, body).number

    sample = await asyncio.to_thread(make_sample, state.root / "sample", add_issue, settings.git_env)
    async with embedded_server(state, Ports(free_port(), free_port()), settings.server_env) as server:
        client = await connect(settings, address=server.address, options=serving_options)
        try:
            async with running_worker(client, settings):
                yield _Stage(settings, sample, WorkOrders(client, settings.task_queue), server)
        finally:
            await end_all(Runs(state.runs), _ORDER_ID, RESTARTED)


def remove_earlier_demos(demos: Path) -> None:
    """Delete the state directories of earlier demos whose server has ended."""
    for used in demos.glob(f"*/{SERVER_LOCK}"):
        if (lock := take_lock(used)) is not None:
            with close_after(lock):
                shutil.rmtree(used.parent, ignore_errors=True)


async def _watch(orders: WorkOrders, *, quiet: bool) -> Task:
    """Show the steps until the work order is closed, and return the work order."""
    end = asyncio.create_task(orders.wait(_ORDER_ID))
    with Live(console=console(), refresh_per_second=8, transient=False, auto_refresh=not quiet) as live:
        while not end.done():
            if not quiet:
                running = await orders.running_step(_ORDER_ID)
                live.update(task_view(await orders.get(_ORDER_ID), running))
            await asyncio.wait([end], timeout=0.15)
        task = await end
        if not quiet:
            live.update("", refresh=True)
    return task


def _answer(stage: _Stage, task: Task) -> CommandReply:
    state_dir = stage.settings.state_dir
    command = f"SEPTET_STATE_DIR={shlex.quote(str(state_dir))} {septet_here(stage.settings.environ)} up"
    stat = ""
    if task.commit_sha is not None:
        git = Git(stage.sample.origin, env=stage.settings.git_env)
        changes = git.run("diff", "--stat", f"{task.commit_sha}~1", task.commit_sha)
        stat = changes.decode(errors="replace").rstrip()
    payload: dict[str, Any] = {"task": task.model_dump(mode="json"), "diff_stat": stat}
    payload |= {"state_dir": str(state_dir), "look": command}
    failure = None
    if task.status is not Status.COMPLETED:
        error = task.error
        message = f"{error.type}: {error.message}" if error else f"{task.id} is {task.status.value}."
        failure = WorkOrderFailedError(message, remedy=error.remedy if error else "")

    def show() -> None:
        out = console()
        show_task(task, with_error=False)
        out.print(Text(stat), soft_wrap=True)
        out.print(Text(f"repository    {stage.sample.origin}"), soft_wrap=True)
        out.print("Look at the work order, its history and its agents' output again:")
        out.print(Text(command, style="bold"), soft_wrap=True)

    return CommandReply(payload, show, failure)
