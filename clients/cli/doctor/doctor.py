"""`septet doctor`: check this machine or a repository, and name the remedy for each problem."""

import asyncio
import platform
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from rich.text import Text

from clients.cli.doctor.agent_checks import agent_checks, try_agent
from clients.cli.doctor.machine_checks import (
    OWN_NAME,
    WORKER,
    WORKER_AGENTS,
    Check,
    CheckStatus,
    machine_checks,
    summary,
    without_missing_agents,
)
from clients.cli.doctor.repository_check import repository_findings
from clients.cli.doctor.server_checks import (
    clock_checks,
    host_checks,
    own_worker_check,
    seal_checks,
    workers_check,
)
from clients.cli.options import DoctorOptions
from clients.cli.terminal.console import console
from clients.cli.terminal.output import wrap
from clients.cli.terminal.reply import CommandReply
from clients.starting.agents import worker_agents
from septet.agents.clis.adapter import FOR_EVERY_AGENT, select_variables
from septet.agents.guest.description import World
from septet.agents.guest.network import parse_way_out
from septet.agents.guest.paths import parse_named_paths
from septet.agents.guest.toolchains import find_toolchains
from septet.agents.runs.folders import Runs
from septet.agents.sandbox import connections
from septet.agents.sandbox.probe import try_network
from septet.agents.sandbox.sandbox import Sandbox, find_sandbox
from septet.agents.turns.warm import warm_orders
from septet.errors import (
    AgentCrashedError,
    InvalidInputError,
    NotFoundError,
    SandboxError,
    SeptetError,
    ServerNotReachedError,
)
from septet.settings import Settings, load_settings
from septet.state import StateDir
from septet.system import processes
from septet.system.text import count_noun
from workers.connection.connection import connect
from workers.observing.logs import set_up_logs
from workers.server.server import temporal_program
from workers.slots import MORE_OPEN_FILES, agents_at_once, allow_open_files

OLDEST_GIT: Final = (2, 38)
_NAME_A_NUMBER: Final = f"Set SEPTET_MAX_AGENTS to a number, and SEPTET_AGENT to an agent that exists, {WORKER}."
_INDENT: Final = 8
"""The width of a status and the space after it, in characters."""
_STYLES: Final[dict[CheckStatus, str]] = {"ok": "green", "warning": "yellow", "failed": "bold red"}


class UnfitError(SeptetError):
    """Something that Septet cannot do without is missing or too old."""


async def doctor(options: DoctorOptions) -> CommandReply:
    """Check this machine: what is missing, and how to fix it."""
    if options.agent is not None:
        return await try_agent(options.agent)
    settings = load_settings()
    set_up_logs(settings)
    sandbox = _find_sandbox(settings)
    checks = [
        _system(),
        _git(settings),
        *machine_checks(settings, confines=isinstance(sandbox, Sandbox) and sandbox.confines),
        *await _server(settings, options.server.address),
        own_worker_check(StateDir(settings.state_dir)),
        _sandbox(sandbox),
        *await asyncio.to_thread(lambda: [*_guest(settings, sandbox)]),
        _capacity(settings),
        *_running_agents(settings),
        *await agent_checks(settings, sandbox),
    ]
    if options.repo is not None:
        around = Sandbox() if isinstance(sandbox, SeptetError) else sandbox
        findings = repository_findings(options.repo, settings, around)
        checks += [Check("repository", *finding) for finding in findings]
    names = ", ".join(check.name for check in checks if check.status == "failed")
    failure = (
        UnfitError(f"These checks failed: {names}.", remedy="Follow the remedy under each of them.")
        if names
        else None
    )
    return CommandReply({"checks": [asdict(check) for check in checks]}, lambda: _show(checks), failure)


def _system() -> Check:
    where = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    if platform.system() == "Linux":
        return Check("system", "ok", where)
    message = f"{where}: untested. Without Linux's sub-reaper only an agent's process group can be stopped."
    return Check("system", "warning", message, "Run workers on Linux if agents may leave processes behind.")


def _git(settings: Settings) -> Check:
    try:
        printed = processes.run(["git", "version"], env=settings.git_env, timeout_seconds=10).stdout.decode()
    except OSError:
        return Check("git", "failed", "git was not found on PATH.", "Install git 2.38 or newer.")
    version = printed.split()[2] if len(printed.split()) > 2 else printed.strip()  # noqa: PLR2004 -- "git version X"
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < OLDEST_GIT:
        return Check("git", "failed", f"git {version} is too old.", "Install git 2.38 or newer.")
    return Check("git", "ok", f"git {version}")


async def _server(settings: Settings, address: str | None) -> list[Check]:
    """Return the checks of the server; without a server, check the program with which `septet up` starts one."""
    try:
        client = await connect(settings, address=address)
    except ServerNotReachedError as error:
        if error.remedy != ServerNotReachedError.default_remedy:
            return [Check("server", "warning", error.message, error.remedy)]
        try:
            program = temporal_program()
        except NotFoundError as missing:
            return [Check("server", "failed", f"{error.message} {missing.message}", missing.remedy)]
        message = f"{error.message} `septet up` can start {program}."
        return [Check("server", "warning", message, "Run `septet up`.")]
    where = client.service_client.config.target_host
    is_there = Check("server", "ok", f"A server answers at {where}, namespace {client.namespace!r}.")
    workers = await workers_check(client, settings.task_queue)
    hosts = await host_checks(client, settings.task_queue)
    # A worker's PATH may differ from this shell's PATH.
    announced = await worker_agents(client, settings.task_queue)
    if names := ", ".join(sorted(set().union(*(host.agents for host in announced)) - {OWN_NAME})):
        hosts.append(Check(WORKER_AGENTS, "ok", f"The running workers can use {names}."))
    seals = await seal_checks(client, required=settings.seal_required)
    return [is_there, workers, *hosts, *await clock_checks(client), *seals]


def _find_sandbox(settings: Settings) -> Sandbox | SeptetError:
    """Return the sandbox for agents, or the error that prevents a worker's start here."""
    try:
        named_paths = parse_named_paths(settings.guest_paths, settings.home)
        guests = settings.guest_hosts, settings.guest_network
        way_out = parse_way_out(*guests, settings.environ, settings.model_requests, settings.setup_hosts)
        world = World(settings.home, named_paths, (settings.state_dir,), way_out)
        return find_sandbox(settings.sandbox, settings.git_env, world)
    except (SandboxError, InvalidInputError) as error:
        return error


def _guest(settings: Settings, sandbox: Sandbox | SeptetError) -> Iterator[Check]:
    """Yield checks of what guests can reach: paths in the settings, toolchains and the network."""
    if isinstance(sandbox, SeptetError) or not sandbox.confines:
        return
    remedy = f"Remove from SEPTET_GUEST_PATHS what agents and checks do not need, {WORKER}."
    for each in sandbox.world.named_paths:
        opening = each.opening(settings.home)
        yield Check("guest path", "warning", opening[:1].upper() + opening[1:], remedy)
    env = select_variables(settings.environ, FOR_EVERY_AGENT)
    if names := ", ".join(map(str, find_toolchains(settings.home, env))):
        message = f"Agents and checks see the language tools on PATH ({names}), without settings and logins."
        yield Check("toolchains", "ok", message)
    yield _guest_network(settings, sandbox)


def _guest_network(settings: Settings, sandbox: Sandbox) -> Check:
    """Return a check of the network that guests can reach; this starts a guest as a test."""
    way_out = sandbox.world.way_out
    if way_out.is_open:
        message = "Agents and checks use this machine's network, and can reach everything that listens on it."
        remedy = f"Unset SEPTET_GUEST_NETWORK, and list the hosts that they need in SEPTET_GUEST_HOSTS, {WORKER}."
        return Check("guest network", "warning", message, remedy)
    why = "" if settings.runner else try_network(sandbox, settings.git_env, settings.state_dir)
    if why:
        message = f"No guest can be started with a private network: {why}"
        needs = "a container needs permission for it (`septet docs containers`)"
        remedy = f"Let this user enter namespaces (`setns`): {needs}."
        return Check("guest network", "warning", message, remedy)
    hosts = ", ".join(map(str, way_out.hosts)) or "nothing"
    message = (
        f"Agents can reach their model's API. SEPTET_GUEST_HOSTS opens to agents and checks: {hosts}. "
        f"SEPTET_SETUP_HOSTS opens to set-up: {', '.join(map(str, way_out.setup_hosts)) or 'nothing'}."
    )
    return Check("guest network", "ok", message)


def _sandbox(sandbox: Sandbox | SeptetError) -> Check:
    """Return a check of the agents' sandbox; without a sandbox, agents run unconfined, which is a warning."""
    if isinstance(sandbox, SeptetError):
        return Check("sandbox", "failed", f"No worker can start here: {sandbox.message}", sandbox.remedy)
    if not sandbox.confines:
        message = f"Agents run unconfined, and processes that they start may survive them. {sandbox.reason}"
        return Check("sandbox", "warning", message, sandbox.remedy)
    if sandbox.remains_root:
        message = (
            f"{sandbox.version} starts, but guests still run as the kernel's user 0, without its capabilities: "
            f"{sandbox.remains_root}"
        )
        remedy = "Run workers as an ordinary user, or with their state directory on ext4, xfs, btrfs or tmpfs."
        return Check("sandbox", "warning", message, remedy)
    message = (
        f"{sandbox.version} starts ({sandbox.program}): agents and checks see only their own workspace, and each "
        "work order's agents have a separate home with a copy of their CLI's login."
    )
    return Check("sandbox", "ok", message)


def _capacity(settings: Settings) -> Check:
    """Return a check that the memory suffices for all agents that a worker here may run at once."""
    try:
        holds = agents_at_once(settings.model_copy(update={"max_agents": "auto"}))
    except (SeptetError, OSError) as error:
        message = f"Septet cannot tell how many agents fit in memory: {error}"
        return Check("capacity", "warning", message, _NAME_A_NUMBER)
    most = agents_at_once(settings)
    runs, room = count_noun(most, "agent"), count_noun(holds, "agent")
    message = f"A worker runs {runs} at a time; there is memory for {room} ({settings.agent})."
    remedy = f"Set SEPTET_MAX_AGENTS=auto, or to a smaller number, {WORKER}." if most > holds else ""
    if missing := allow_open_files(most):
        message, remedy = f"{message} They may take {missing} more open files than are allowed.", MORE_OPEN_FILES
    return Check("capacity", "warning" if remedy else "ok", message, remedy)


def _running_agents(settings: Settings) -> Iterator[Check]:
    """Yield a check that the runner answers, and a check that lists the agents kept for their next turn."""
    state = StateDir(settings.state_dir)
    if settings.runner:
        try:
            connections.connect_to_runner(state.runner).close()
            yield Check("runner", "ok", f"A runner starts the agents of {state.root}.")
        except AgentCrashedError as error:
            yield Check("runner", "failed", f"No agent can start here: {error.message}", error.remedy)
    if orders := warm_orders(Runs(state.runs)) if state.runs.is_dir() else []:
        message = f"{len(orders)} left running for the next turn, stopped between turns: {', '.join(orders)}."
        yield Check("warm agents", "ok", message)


def _show(checks: list[Check]) -> None:
    out = console()
    width = out.width if out.is_terminal else 0
    for check in without_missing_agents(checks):
        line = Text(wrap(f"{check.status:8}{check.name}: {check.message}", width, _INDENT))
        line.stylize(_STYLES[check.status], 0, len(check.status))
        out.print(line, soft_wrap=True)
        if check.remedy and check.status != "ok":
            out.print(Text(wrap(" " * _INDENT + check.remedy, width, _INDENT)), soft_wrap=True)
    out.print(Text(wrap(summary(checks), width), style="bold"), soft_wrap=True)
