import subprocess
import sys

from septet.agents.clis.registry import ADAPTERS
from septet.contracts.names import AGENTS

HEAVY = ("fastapi", "jinja2", "msgspec", "pydantic", "rich", "temporalio")
UNUSED_BY_RUN = (
    "clients.disk.agent_logs",
    "clients.temporal.board",
    "clients.temporal.decisions",
    "cryptography",
    "fastapi",
    "httpx",
    "psutil",
    "septet.agents.clis.registry",
    "septet.contracts.forge_events",
    "septet.contracts.pipeline",
    "septet.contracts.steps",
    "septet.forges.local",
    "septet.repository_settings",
    "septet.trackers",
    "structlog",
    "temporalio.worker",
    "workers.plugin",
    "workers.server",
)
"""What a worker, another command, or a later part of `septet run --wait` is made of."""
UNTIL_ID = (
    "clients.asked_agents, clients.cli.start_view, clients.cli.start, clients.operations, clients.order_checks"
)
"""What `septet run` imports until its id is shown."""


def imported_of(modules: tuple[str, ...], statement: str) -> str:
    """Return, as a list in Python's own writing, which modules a new Python has imported after a statement."""
    looked = f"import sys, {statement}; print([name for name in {modules} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", looked], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_help_imports_nothing_heavy() -> None:
    """What `septet --help` and the shell's completion need is there without the packages that take long to import."""
    assert imported_of(HEAVY, "clients.cli.main") == "[]"


def test_septet_run_shows_an_id_without_what_only_others_need() -> None:
    """Who waits for the id of a new work order does not wait for modules of workers and of other commands."""
    assert imported_of(UNUSED_BY_RUN, f"clients.cli.main, {UNTIL_ID}") == "[]"


def test_the_names_of_agents_are_those_of_their_adapters() -> None:
    """Who only checks a name does not import the adapters."""
    assert tuple(ADAPTERS) == AGENTS
