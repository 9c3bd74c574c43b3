"""`septet runner`: start agents for workers that come and go."""

import sys

from clients.cli.serve.options import RunnerOptions
from clients.cli.terminal.output import print_json, say
from clients.cli.terminal.reply import CommandReply
from septet.agents.sandbox.connections import become_runner, hold_signals, listen, take_lock
from septet.settings import load_settings
from septet.state import StateDir


async def runner(options: RunnerOptions) -> CommandReply:
    """Start agents for workers that come and go, until SIGTERM."""
    state = StateDir(load_settings().state_dir)
    state.prepare()
    lock = take_lock(state.runner)
    hold_signals()
    listener = listen(state.runner)
    if options.as_json:
        print_json({"ok": True, "ready": True, "host": state.host_id(), "state_dir": str(state.root)})
    else:
        say(f"Runner {state.host_id()} starts agents for the workers of {state.root}.")
    sys.stdout.flush()
    become_runner(listener, lock)
