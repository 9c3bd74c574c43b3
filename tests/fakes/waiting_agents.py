"""A host whose agents wait for their next turn."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fakes.agent_lab import Lab
from fakes.step_lab import settings_of

from activities.host.host import Host
from septet.agents.sandbox.supervisors import Supervisors
from septet.state import StateDir


@contextmanager
def waiting_agents(root: Path) -> Iterator[tuple[Host, Lab]]:
    """Yield a host, and a lab whose agents wait on the host after each turn."""
    (root / "worktree").mkdir()
    settings = settings_of(root)
    state = StateDir(settings.state_dir)
    state.prepare()
    supervisors = Supervisors()
    host = Host("host", settings, state, supervisors)
    lab = Lab(root, replace(host.runtime, sandbox=host.sandbox))
    (root / "agent").unlink()
    lab.warm_agent("result(heard)")
    try:
        yield host, lab
    finally:
        supervisors.close()
