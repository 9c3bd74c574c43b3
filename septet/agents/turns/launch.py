"""The start of an agent: the run's folder and record, and the message by which a supervisor starts the agent."""

import os
import socket
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from septet.agents.clis.adapter import Invocation, Turn
from septet.agents.clis.own_files import locate, own_folders, own_packages
from septet.agents.guest.description import GuestFiles
from septet.agents.guest.paths import OwnFolder
from septet.agents.processes.order import RUN, WARM, Confinement, Limits, Order
from septet.agents.processes.process_tree import LINUX
from septet.agents.runs.folders import RUN_VARIABLE, SETUP_FOLDER, Run
from septet.agents.runs.logs import refusal_note
from septet.agents.runs.records import RunRecord, StartReason, seconds_since_boot
from septet.agents.sandbox.model_hosts import model_hosts, model_keys, named_model_hosts, without_keys
from septet.agents.turns.follow import HELD_SECONDS, HELD_TOKENS, HELD_USD
from septet.agents.turns.guest_home import open_home, prepare_home
from septet.agents.turns.next_move import BEGIN_ANEW, Start
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.warm import REPLACED, TurnProcess, WarmProcessEndedError, WarmStart, end_warm
from septet.errors import DiskFullError, WorkspaceError
from septet.git.worktree.dot_git import clear_locks
from septet.system.disk import full_disk
from septet.system.text import timestamp

_LOOK: Final = "Look at the worktree (`git status`, `git diff`) before you do anything twice."
_GO_ON: Final = "Then go on with the task, and answer in the end exactly as it asks."
_NOTES: Final[Mapping[StartReason, str]] = {
    "crashed": (
        "The process that carried this conversation ended unexpectedly. A tool call that was under way may have "
        f"had its effect, or a part of it, or none: its outcome is unknown. {_LOOK} {_GO_ON}"
    ),
    "interrupted": f"This conversation was interrupted from outside, and goes on now. {_LOOK} {_GO_ON}",
    "waited": f"The connection to the model failed, and works again. {_LOOK} {_GO_ON}",
    "limit": f"This conversation reached a limit. Finish what is missing, in few steps. {_LOOK} {_GO_ON}",
    "session": (
        "Another conversation on this task could not be continued. What it did is in the worktree. "
        f"{_LOOK} Go on from there. The task was:"
    ),
    "context": (
        "Another conversation on this task became too long and was ended. What it did is in the worktree. "
        f"{_LOOK} Go on from there. The task was:"
    ),
}
"""The note that precedes or replaces the prompt, by start reason."""


def launch(request: TurnRequest, start: Start, writer_lock: int) -> tuple[Run, socket.socket]:
    """Start an agent, or send the turn to a warm process; return the run and the socket to the supervisor.

    The supervisor gets the writer's lock. This function always closes the descriptor `writer_lock`.

    Raises:
        DiskFullError: The disk has too little room for an agent; nothing was started.
        AgentMissingError: The program was not found.
        AgentError: The agent cannot work on this host, or an earlier warm process does not end.
        AgentCrashedError: The runner that starts agents is missing.
        GitBusyError: A git process works in the worktree, and no agent has started it.
        LoginBusyError: Another agent is about to refresh the login; nothing was started.
        WarmProcessEndedError: The warm process for the turn has ended; nothing was started.
        OSError: The disk or the machine refused.
    """
    runtime, limits = request.runtime, request.limits
    try:
        if full := full_disk(runtime.runs.root):
            raise DiskFullError(full)
        runtime.supervisors.check()
        with suppress(WorkspaceError):  # a `.git` that leads elsewhere: the step's evidence reports it
            clear_locks(request.turn.worktree / ".git")
        turn = _turn(request, start)
        own_home = open_home(request)
        invocation = request.adapter.invocation(turn, runtime.host)
        warm_start = _warm_start(request, turn, own_home)
        process = TurnProcess.for_turn(runtime.runs, request.order_id, warm_start, turn.resume_id)
        run, run_lock, sent = None, None, False
        try:
            prepare_home(request, turn.resume_id, anew=process.living is None)
            inside = _inside(request, invocation)
            record = _record(request, start, turn, inside, process)
            run, run_lock = runtime.runs.create(request.order_id, request.number, record, invocation.stdin)
            confinement = _confinement(request, invocation, own_home)
            order = Order(
                folder=str(run.folder),
                directory=str(turn.worktree),
                argv=inside.argv,
                env={**inside.env, RUN_VARIABLE: record.mark},
                limits=Limits(
                    limits.wall_seconds, limits.idle_seconds, orphan_seconds=runtime.orphan_limit_seconds
                ).with_resources(runtime.resources),
            ).inside(confinement)
            order.kind = WARM if turn.warm else RUN
            try:
                attached = process.send_order(runtime.supervisors, run, order, (writer_lock, run_lock))
            except WarmProcessEndedError:
                end_warm(runtime.runs, request.order_id, REPLACED)
                raise
            sent = True
            return run, attached
        finally:
            process.close()
            if run_lock is not None:
                os.close(run_lock)
            if run is not None and not sent:
                run.drop_unstarted()
    finally:
        os.close(writer_lock)


def _turn(request: TurnRequest, start: Start) -> Turn:
    turn = request.turn
    anew = _begins_anew(start) and not turn.about_session
    resume_id = start.session_id or (None if anew else turn.resume_id)
    own_id = resume_id is None and request.adapter.capabilities.own_session_id
    prompt = _prompt(start, turn.prompt, whole=turn.resume_id is not None)
    runs, order_id = request.runtime.runs, request.order_id
    setup = runs.folder_of(order_id) / SETUP_FOLDER
    note = refusal_note(setup, runs.lately(order_id)) if request.runtime.sandbox.confines else ""
    prompt = f"{prompt}\n\n{note}\n" if note else prompt
    return replace(
        turn,
        prompt=f"{prompt}\n{turn.for_new_session}" if turn.for_new_session and resume_id is None else prompt,
        session_id=str(uuid.uuid4()) if own_id else None,
        resume_id=resume_id,
        max_turns=turn.max_turns or request.limits.turns,
        warm=turn.warm and request.runtime.warm and LINUX and request.adapter.capabilities.input_stream,
    )


def _warm_start(request: TurnRequest, turn: Turn, own_home: tuple[OwnFolder, ...]) -> WarmStart | None:
    """Return command, environment and folder of a process that stays warm; `None` if it ends with the turn."""
    if not turn.warm:
        return None
    host = request.runtime.host
    plain = request.adapter.invocation(replace(turn, prompt="", session_id=None, resume_id=None), host)
    confinement = _confinement(request, plain, own_home)
    inside = _inside(request, plain)
    argv = inside.argv if confinement is None else (*confinement.inline(inside.argv), str(confinement.network))
    return WarmStart(argv, inside.env, turn.worktree)


def _confinement(
    request: TurnRequest, invocation: Invocation, own_home: tuple[OwnFolder, ...]
) -> Confinement | None:
    runtime = request.runtime
    if not runtime.sandbox.confines:
        return None
    return runtime.sandbox.confinement(
        GuestFiles(
            request.turn.worktree,
            request.objects,
            invocation.argv if request.adapter.capabilities.names_files else invocation.argv[:1],
            invocation.env,
            () if own_home else own_folders(request.adapter, runtime.host),
            own_home,
            own_packages(request.adapter, runtime.host),
            model_hosts(request.adapter, runtime.host, invocation),
            named_model_hosts(request.adapter, runtime.host, invocation),
            model_keys(request.adapter, runtime.host, invocation),
        )
    )


def _inside(request: TurnRequest, invocation: Invocation) -> Invocation:
    """Return the agent's invocation in its sandbox; with a private network, it contains no keys of models."""
    sandbox, host = request.runtime.sandbox, request.runtime.host
    if not sandbox.confines:
        return invocation
    inside = without_keys(request.adapter, host, invocation) if sandbox.has_network else invocation
    compiled = request.adapter.capabilities.compiled
    if compiled is not None:
        place = locate(request.adapter, host, compiled.place)
        inside = replace(inside, env={**inside.env, compiled.variable: str(place)})
    return replace(inside, env=sandbox.environment(inside.env))


def _record(
    request: TurnRequest, start: Start, turn: Turn, invocation: Invocation, process: TurnProcess
) -> RunRecord:
    limits, caps = request.limits, request.caps
    held = {HELD_USD: caps.usd, HELD_TOKENS: caps.tokens, HELD_SECONDS: caps.seconds}
    return RunRecord(
        key=request.key,
        serial=start.serial,
        step=request.step,
        agent=request.adapter.name,
        because=start.because,
        mark=process.mark,
        argv=invocation.argv,
        env_names=tuple(sorted((*invocation.env, RUN_VARIABLE))),
        worktree=str(turn.worktree),
        limits={
            "wall_seconds": limits.wall_seconds,
            "idle_seconds": limits.idle_seconds,
            "turns": limits.turns,
            **{name: amount for name, amount in held.items() if amount is not None},
        },
        started_at=timestamp(datetime.now(UTC)),
        began_at_seconds=seconds_since_boot(),
        session_id=turn.session_id or turn.resume_id,
        resumed_from=turn.resume_id,
        sandbox=request.runtime.sandbox.kind,
        network="own" if request.runtime.sandbox.has_network else "host",
        warm=turn.warm,
        began_in=process.began_in,
        login=request.login,
        model=turn.model or "",
        payer=request.payer,
    )


def _begins_anew(start: Start) -> bool:
    """Return whether the session is broken, refused or out of date, so that a new session replaces it."""
    return start.was_reset or not BEGIN_ANEW.isdisjoint({start.because, *start.earlier})


def _begins_as(start: Start) -> StartReason:
    """Return the reason that a new session's prompt states: the latest that is not `waited`, else `first`."""
    reasons = (*start.earlier, start.because)
    return next((because for because in reversed(reasons) if because != "waited"), "first")


def _prompt(start: Start, prompt: str, *, whole: bool) -> str:
    """Return the agent's prompt; if `whole`, repeat the step's prompt even in a session that has received it."""
    anew = start.session_id is None
    because = _begins_as(start) if anew else start.because
    note = "" if anew and because not in {"context", "session"} else _NOTES.get(because, "")
    if note and not anew and not whole:
        return note
    return f"{note}\n\n{prompt}" if note else prompt
