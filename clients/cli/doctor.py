"""`septet doctor`: what is missing on this machine or in a repository, and the remedy."""

import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final, Literal

from rich.text import Text

from clients.cli import tables
from clients.cli.reply import Reply, reply
from clients.repository_check import repository_findings
from septet import processes
from septet.agents.adapter import Host, Turn
from septet.agents.registry import ADAPTERS
from septet.errors import NotFoundError, SeptetError, ServerNotReachedError
from septet.settings import Settings, load_settings
from workers.connection import connect
from workers.server import temporal_program

Status = Literal["ok", "warning", "failed"]

OLDEST_GIT: Final = (2, 38)
_STYLES: Final[dict[Status, str]] = {"ok": "green", "warning": "yellow", "failed": "bold red"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    status: Status
    message: str
    remedy: str = ""


class UnfitError(SeptetError):
    """Something that Septet cannot do without is missing."""


def doctor(repo: str | None, *, address: str | None, as_json: bool) -> None:
    """Look at git, the server, the agents and the system; with a repository, at its commands and settings too."""

    async def work() -> Reply:
        settings = load_settings()
        checks = [
            _system(),
            _git(settings),
            await _server(settings, address),
            *_agents(settings),
        ]
        if repo is not None:
            checks += [Check("repository", *finding) for finding in repository_findings(repo, settings)]
        failed = [check for check in checks if check.status == "failed"]
        error = UnfitError(f"Missing: {', '.join(check.name for check in failed)}.") if failed else None
        return Reply({"checks": [asdict(check) for check in checks]}, lambda: _show(checks), error)

    reply(work, as_json=as_json)


def _system() -> Check:
    where = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    if platform.system() == "Linux":
        return Check("system", "ok", where)
    return Check(
        "system",
        "warning",
        f"{where}: untested. Without Linux's sub-reaper an agent's processes are ended by process group alone.",
        "Run workers on Linux where agents may leave processes behind.",
    )


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


async def _server(settings: Settings, address: str | None) -> Check:
    """Look for a server that answers, else for the program that `septet up` starts."""
    try:
        client = await connect(settings, address=address)
    except ServerNotReachedError as error:
        try:
            program = temporal_program()
        except NotFoundError as missing:
            return Check("server", "failed", f"{error.message} {missing.message}", missing.remedy)
        return Check("server", "warning", f"{error.message} `septet up` can start {program}.", "Run `septet up`.")
    where = client.service_client.config.target_host
    return Check("server", "ok", f"A server answers at {where}, namespace {client.namespace!r}.")


def _agents(settings: Settings) -> Iterator[Check]:
    host = Host(settings.environ, settings.agent_programs, sandboxed=settings.sandboxed)
    found = []
    for name, adapter in ADAPTERS.items():
        try:
            program = adapter.invocation(Turn(prompt="", worktree=settings.state_dir), host).argv[0]
        except SeptetError as error:
            yield Check(f"agent {name}", "warning", error.message, error.remedy)
        else:
            found.append(name)
            yield Check(f"agent {name}", "ok", program)
    if not found:
        yield Check("agents", "failed", "No agent was found.", "Install one, such as claude.")


def _show(checks: list[Check]) -> None:
    out = tables.console()
    for check in checks:
        out.print(Text.assemble((f"{check.status:8}", _STYLES[check.status]), f"{check.name}: {check.message}"))
        if check.remedy and check.status != "ok":
            out.print(Text(f"        {check.remedy}"))
