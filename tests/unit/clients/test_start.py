import subprocess
import sys

import pytest

from clients.starting.unlimited import find_unlimited
from septet.agents.clis.registry import ADAPTERS
from septet.contracts.names import AGENTS
from septet.contracts.order import WorkOrderInput

HEAVY = ("asyncio", "fastapi", "httpx", "jinja2", "msgspec", "pydantic", "rich", "temporalio")
UNUSED_BY_RUN = (
    "cryptography",
    "fastapi",
    "httpx",
    "psutil",
    "septet.agents.clis.registry",
    "septet.forges.local",
    "septet.trackers",
    "structlog",
    "temporalio.worker",
    "workers.connection.plugin",
)
"""Modules of workers, of other commands, and of later parts of `septet run --wait`."""
UNTIL_ID = "clients.starting.agents, clients.cli.start.run, clients.operations.operations, clients.starting.checks"
"""The modules that `septet run` imports until it shows the id."""


def imported_of(modules: tuple[str, ...], statement: str) -> str:
    """Return the modules, as Python prints a list, that a new Python has imported after a statement."""
    looked = f"import sys, {statement}; print([name for name in {modules} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", looked], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("run", "--help"),
        ("run", "--priority", "x"),
        ("nope",),
    ],
    ids=" ".join,
)
def test_a_help_and_a_mistake_import_no_command(words: tuple[str, ...]) -> None:
    """Help and mistakes import neither the command's module nor a slow package, except one that reads a value."""
    unwanted = (*HEAVY, "septet.settings", "clients.operations.operations", "clients.cli.start.run")
    code = f"""
import sys, clients.cli.main
try:
    clients.cli.main.run({words!r})
except SystemExit:
    pass
sys.stderr.write(str([name for name in {unwanted!r} if name in sys.modules]))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.endswith("['pydantic']" if "--priority" in words else "[]")


def test_septet_run_shows_an_id_without_what_only_others_need() -> None:
    """`septet run` shows the id without the modules of workers and of other commands."""
    assert imported_of(UNUSED_BY_RUN, f"clients.cli.main, {UNTIL_ID}") == "[]"


def test_the_names_of_agents_are_those_of_their_adapters() -> None:
    """The list of names, which needs no adapter, equals the adapters' names."""
    assert tuple(ADAPTERS) == AGENTS


@pytest.mark.parametrize(
    ("agent", "fallback", "budget", "told"),
    [
        ("codex", None, "5usd", "Not limited by `--budget 5usd`: codex reports no dollars."),
        ("claude", "codex", "5usd,2Mtok/day", ""),
        ("claude", "copilot", "5usd/day", "copilot reports neither dollars nor tokens"),
        ("copilot", "gemini", "2Mtok", "Not limited by `--budget 2Mtok`: copilot reports neither"),
        ("copilot", "codex", "5usd,90min", ""),
        (None, None, "5usd", ""),
        ("codex", None, None, ""),
    ],
)
def test_a_budget_that_does_not_limit_an_agent_is_told_at_the_start(
    agent: str | None, fallback: str | None, budget: str | None, told: str
) -> None:
    """The notice names each agent that the budget does not limit, and an amount that does."""
    fields = {"repository": "/app", "title": "Go", "agent": agent, "fallback_agent": fallback, "budget": budget}
    notice = find_unlimited(WorkOrderInput.model_validate(fields))
    assert told in notice
    assert bool(notice) == bool(told)
    assert not notice or "90min" in notice
