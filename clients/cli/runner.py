"""`septet runner`: start agents for the workers of a state directory, which may come and go."""

import sys

import typer

from clients.cli.reply import Reply, print_json, reply
from septet.agents.turns.runner_connection import become_runner, hold_signals, listen, take_lock
from septet.settings import load_settings
from septet.state import StateDir


def runner(*, as_json: bool) -> None:
    """Serve until SIGTERM, which ends its agents; the workers resume them."""

    async def work() -> Reply:
        state = StateDir(load_settings().state_dir)
        state.prepare()
        lock = take_lock(state.runner)
        hold_signals()
        listener = listen(state.runner)
        if as_json:
            print_json({"ok": True, "ready": True, "host": state.host_id(), "state_dir": str(state.root)})
        else:
            typer.echo(f"Runner {state.host_id()} starts agents for the workers of {state.root}.")
        sys.stdout.flush()
        become_runner(listener, lock)

    reply(work, as_json=as_json)
