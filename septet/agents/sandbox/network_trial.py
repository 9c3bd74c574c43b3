"""A trial of a guest's network: one is started as agents are, which waits until its proxy listens inside."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from septet.agents.runs.folders import Runs
from septet.agents.sandbox.guest_run import GuestCommand, GuestRunner
from septet.agents.sandbox.sandbox import Sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.errors import SeptetError
from septet.system.locks import lock, open_lock

_SECONDS: Final = 20.0
_PROGRAM: Final = ("true",)


def try_network(sandbox: Sandbox, env: Mapping[str, str], state_dir: Path) -> str:
    """Start a guest that does nothing, in a network of its own; return why it cannot be, or nothing.

    Args:
        sandbox: What confines it.
        env: The environment in which programs are looked for.
        state_dir: Where a folder is made for the trial, and removed; among temporary files if it is absent.
    """
    place = state_dir if state_dir.is_dir() else None
    # Its supervisor may write its last record while the folder goes: that says nothing about the network.
    supervisors = Supervisors()
    try:
        with tempfile.TemporaryDirectory(prefix="trial-", dir=place, ignore_cleanup_errors=True) as name:
            folder = Path(name)
            workspace = folder / "workspace"
            workspace.mkdir()
            writer_lock = open_lock(folder / "writer")
            try:
                lock(writer_lock)
                runner = GuestRunner(Runs(folder), supervisors, sandbox, folder / "records", None, writer_lock)
                path = {"PATH": env.get("PATH", os.defpath)}
                end = runner.run(GuestCommand(_PROGRAM, path, workspace, _SECONDS))
            finally:
                os.close(writer_lock)
    except (SeptetError, OSError) as error:
        return str(error)
    finally:
        supervisors.close()
    if end.record.cause == "exited" and end.code == 0:
        return ""
    return end.record.why or end.output.strip()[-300:] or f"it ended with {end.code}"
