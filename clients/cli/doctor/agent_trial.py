"""`septet doctor --try AGENT`: one short turn, started, confined and limited like work."""

import shutil
import tempfile
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich.text import Text

from activities.host.host import Host
from activities.turns.results import warnings_of
from activities.turns.turn_budget import run_turn
from clients.cli.doctor.machine_checks import Check
from clients.cli.render.steps import usage_text
from clients.cli.terminal.console import console
from clients.cli.terminal.reply import CommandReply
from septet.agents.clis.adapter import Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.runs.lease import Lease
from septet.agents.runs.records import RunKey
from septet.agents.turns.end_of_turn import end_all
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.turn_runs import TurnResult
from septet.contracts.order import Timeouts
from septet.errors import SeptetError
from septet.settings import load_settings
from septet.system import processes
from septet.system.preview import preview, printable
from workers.observing.logs import set_up_logs
from workers.registry import parts_of

_PROMPT: Final = "This is a trial. Use no tool, change nothing, and answer with the word: ready."
_LIMITS: Final = Timeouts(wall_seconds=120, idle_seconds=120, turns=3)


async def try_agent(agent: str) -> CommandReply:
    """Run one turn of an agent in a temporary empty repository; keep the files of a failed run.

    Raises:
        SeptetError: The agent did not answer; the remedy names the change that helps.
        OSError: The disk or the machine refused.
    """
    settings, again = load_settings(), f"`septet doctor --try {agent}`"
    set_up_logs(settings)
    adapter_for(agent)
    async with parts_of(settings) as parts:
        try:
            with tempfile.TemporaryDirectory(
                prefix="trial-", dir=parts.host.state.root, ignore_cleanup_errors=True
            ) as name:
                result = await _take_turn(parts.host, agent, Path(name) / "workspace")
        except SeptetError as error:
            later = f"Check the address and the network of its model, or run {again} again later."
            error.remedy = later if error.retryable else error.remedy.replace("`septet retry`", again)
            raise
    check = Check(f"trial of {agent}", "ok", _words_of(agent, result))
    return CommandReply({"checks": [asdict(check)]}, lambda: console().print(Text(check.message), soft_wrap=True))


async def _take_turn(host: Host, agent: str, worktree: Path) -> TurnResult:
    """Run the turn; afterwards no process of the agent runs, and the agent's home is removed."""
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


def _words_of(agent: str, result: TurnResult) -> str:
    """Return the agent's answer and use, in words."""
    outcome = result.outcome
    model = f" ({outcome.model})" if outcome.model else ""
    used = usage_text(result.usage) if result.usage.tokens else "it does not report tokens"
    answer = printable(preview(" ".join((outcome.text or "").split())))
    facts = (f"{agent}{model} answered {answer!r} in {result.duration_seconds:.1f} s", used, *warnings_of(result))
    return "; ".join(facts)


def _wait(_progress: object) -> None:
    """Do nothing: a short turn needs no report of progress."""


async def _begin_anew() -> None:
    """Leave the empty worktree as it is."""
