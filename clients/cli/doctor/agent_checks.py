"""The checks of `septet doctor` on agents: their programs, their logins, and further logins."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from clients.cli.doctor.machine_checks import (
    WORKER,
    Check,
    MissingAgent,
)
from septet.agents.clis.adapter import Adapter, Machine
from septet.agents.clis.own_files import read_login
from septet.agents.clis.registry import ADAPTERS, adapter_for, seen_login
from septet.agents.sandbox.probe import Probe, probe
from septet.agents.sandbox.sandbox import Sandbox
from septet.errors import (
    SeptetError,
)
from septet.settings import Settings


async def agent_checks(settings: Settings, sandbox: Sandbox | SeptetError) -> list[Check]:
    """Check all agents in parallel, because some agents take seconds to print their version."""
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
    """Return the check of an agent, and whether its program exists."""
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
        remedies += [f"Log in with `{Path(agent.program).name}`, or set one of {ways} {WORKER}."] * (
            agent.login is None
        )
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
    """Yield a check of each further login, in the order in which work uses the logins."""
    for agent, logins in settings.agent_logins.items():
        for name, path in logins.items():
            title = f"login {name} of {agent}"
            try:
                yield _login(title, adapter_for(agent), machine, name, path)
            except SeptetError as error:
                yield Check(title, "failed", f"No worker starts with it: {error.message}", error.remedy)


def _login(title: str, adapter: Adapter, machine: Machine, name: str, path: Path) -> Check:
    """Check that the CLI's login exists; only the model's provider can check that it is valid.

    Raises:
        InvalidInputError: The login cannot be used.
    """
    login, facts = read_login(adapter, machine, name, path), adapter.capabilities
    seen = seen_login(adapter, login.machine)
    if seen is None and facts.needs_login:
        home = f"{facts.home[0]}={path} " if login.folder is not None else ""
        ways = (
            f"Log in with `{home}{adapter.name}`" if home else f"Write one of {', '.join(facts.login_variables)}"
        )
        return Check(title, "warning", f"No login was found in {path}.", f"{ways}.")
    return Check(title, "ok", f"{path}; login found: {seen}" if seen else str(path))
