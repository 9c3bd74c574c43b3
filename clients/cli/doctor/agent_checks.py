"""The checks of `septet doctor` on agents: programs, logins, and with `--try` one short turn of an agent."""

import asyncio
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final

from rich.text import Text

from activities.host.host import Host
from activities.turns.results import warnings_of
from activities.turns.turn_budget import run_turn
from clients.cli.doctor.machine_checks import WORKER, Check, MissingAgent
from clients.cli.render.detail import usage_text
from clients.cli.terminal.console import console
from clients.cli.terminal.reply import CommandReply
from septet.agents.clis.adapter import Adapter, Machine, Turn
from septet.agents.clis.registry import ADAPTERS, adapter_for, read_login, seen_login
from septet.agents.runs.lease import Lease
from septet.agents.runs.records import RunKey
from septet.agents.sandbox.probe import Probe, probe
from septet.agents.sandbox.sandbox import Sandbox
from septet.agents.turns.end_of_turn import end_all
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.turn_runs import TurnResult
from septet.contracts.order import Timeouts
from septet.errors import SeptetError
from septet.settings import Settings, load_settings
from septet.system import processes
from septet.system.masking import preview, printable
from workers.observing.logs import set_up_logs
from workers.registry import parts_of


async def agent_checks(settings: Settings, sandbox: Sandbox | SeptetError) -> list[Check]:
    """Return the checks of all agents and logins; they run in parallel, because some agents are slow."""
    around = Sandbox() if isinstance(sandbox, SeptetError) else sandbox
    sandboxed = settings.sandboxed or around.confines
    machine = Machine(settings.environ, settings.agent_programs, sandboxed=sandboxed)
    look = partial(_agent, machine=machine, worktree=settings.state_dir, sandbox=around)
    looks = [asyncio.to_thread(look, adapter) for adapter in ADAPTERS.values()]
    results = await asyncio.gather(*looks)
    checks = [check for check, _ in results]
    checks += await asyncio.to_thread(lambda: [*_login_checks(settings, machine)])
    if not any(is_there for _, is_there in results):
        checks.append(Check("agents", "failed", "No agent was found.", "Install one, such as claude."))
    return checks


def _agent(adapter: Adapter, machine: Machine, worktree: Path, sandbox: Sandbox) -> tuple[Check, bool]:
    """Return the check of an agent, and whether the agent's program exists."""
    name = f"agent {adapter.name}"
    try:
        agent = probe(adapter, machine, worktree, sandbox)
    except SeptetError as error:
        return MissingAgent(name, "warning", error.message, error.remedy), False
    facts = [agent.program, *_version(agent)]
    is_untested = bool(agent.tested) and not (agent.in_range or agent.is_newer)
    trial = f"see whether this version works (`septet doctor --try {adapter.name}`)"
    remedies = [f"Install {adapter.name} {agent.tested}, or {trial}."] * is_untested
    if adapter.capabilities.needs_login:
        facts.append(f"login found: {agent.login}" if agent.login else "no login found")
        ways = ", ".join(adapter.capabilities.login_variables)
        if agent.login is None:
            remedies.append(f"Log in with `{Path(agent.program).name}`, or set one of {ways} {WORKER}.")
    if agent.obstacle is not None:
        facts.append(agent.obstacle.message.rstrip("."))
        remedies.append(agent.obstacle.remedy)
    return Check(name, "warning" if remedies else "ok", "; ".join(facts), " ".join(remedies)), True


def _version(agent: Probe) -> list[str]:
    if not agent.tested:
        return []
    if agent.version is None:
        instead = f", but {agent.complaint!r}" if agent.complaint else ""
        return [f"it reports no version{instead} (tested: {agent.tested})"]
    if agent.is_newer:
        return [f"version {agent.version} (newer than tested; usually fine; tested: {agent.tested})"]
    return [f"version {agent.version} ({'tested' if agent.in_range else f'untested; tested: {agent.tested}'})"]


def _login_checks(settings: Settings, machine: Machine) -> Iterator[Check]:
    """Yield a check of each additional login that the settings name for an agent, in the order of use."""
    for agent, logins in settings.agent_logins.items():
        for name, path in logins.items():
            title = f"login {name} of {agent}"
            try:
                yield _login(title, adapter_for(agent), machine, name, path)
            except SeptetError as error:
                yield Check(title, "failed", f"No worker starts with it: {error.message}", error.remedy)


def _login(title: str, adapter: Adapter, machine: Machine, name: str, path: Path) -> Check:
    """Return a check that a login exists; the check does not find out whether the login is valid."""
    login, facts = read_login(adapter, machine, name, path), adapter.capabilities
    seen = seen_login(adapter, login.machine)
    if seen is None and facts.needs_login:
        way = f"Write one of {', '.join(facts.login_variables)}."
        if login.folder is not None:
            way = f"Log in with `{facts.home[0]}={path} {adapter.name}`."
        return Check(title, "warning", f"No login was found in {path}.", way)
    return Check(title, "ok", f"{path}; login found: {seen}" if seen else str(path))


_PROMPT: Final = "This is a trial. Use no tool, change nothing, and answer with the word: ready."
_LIMITS: Final = Timeouts(wall_seconds=120, idle_seconds=120, turns=3)


async def try_agent(agent: str) -> CommandReply:
    """Run one turn of an agent in a temporary empty repository; keep the files of a failed run.

    Raises:
        SeptetError: The agent did not answer; the remedy names the change that helps.
        OSError: A file cannot be written, or a process cannot be started.
    """
    settings, again = load_settings(), f"`septet doctor --try {agent}`"
    set_up_logs(settings)
    adapter_for(agent)
    async with parts_of(settings) as parts:
        try:
            root = parts.host.state.root
            with tempfile.TemporaryDirectory(prefix="trial-", dir=root, ignore_cleanup_errors=True) as name:
                result = await _take_turn(parts.host, agent, Path(name) / "workspace")
        except SeptetError as error:
            later = f"Check the address and the network of its model, or run {again} again later."
            error.remedy = later if error.retryable else error.remedy.replace("`septet retry`", again)
            raise
    outcome = result.outcome
    model = f" ({outcome.model})" if outcome.model else ""
    used = usage_text(result.usage) if result.usage.tokens else "it does not report tokens"
    answer = printable(preview(" ".join((outcome.text or "").split())))
    said = f"{agent}{model} answered {answer!r} in {result.duration_seconds:.1f} s"
    check = Check(f"trial of {agent}", "ok", "; ".join((said, used, *warnings_of(result))))
    return CommandReply({"checks": [asdict(check)]}, lambda: console().print(Text(check.message), soft_wrap=True))


async def _take_turn(host: Host, agent: str, worktree: Path) -> TurnResult:
    """Run one turn of an agent, end the agent's processes and delete the agent's home; return the result."""
    processes.run(["git", "init", "--quiet", str(worktree)], env=host.settings.git_env, timeout_seconds=30)
    order_id, runtime = f"trial-{uuid.uuid4().hex[:12]}", host.runtime
    request = TurnRequest(
        key=RunKey(order_id, order_id, "1"),
        order_id=order_id,
        number=0,
        step="trial",
        adapter=adapter_for(agent),
        turn=Turn(_PROMPT, worktree, model=host.settings.model),
        limits=_LIMITS,
        runtime=runtime,
    )
    lease = Lease.take(runtime.runs, request.key)
    try:
        result = await run_turn(request, lease=lease, on_progress=_wait, leave_work=_begin_anew)
    finally:
        await end_all(runtime.runs, order_id, "cancelled")
        if home := host.homes.close(order_id):
            shutil.rmtree(home, ignore_errors=True)
    shutil.rmtree(runtime.runs.folder_of(order_id), ignore_errors=True)
    return result


def _wait(_progress: object) -> None:
    """Do nothing: a short turn needs no reports of progress."""


async def _begin_anew() -> None:
    """Do nothing: the empty worktree has no work to rescue."""
