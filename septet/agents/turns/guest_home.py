"""A turn's home: prepare it before the agent starts, and write the user's login back after the agent's end."""

import logging
from contextlib import nullcontext
from typing import Final

from septet.agents.guest.placements import OwnFolder
from septet.agents.homes.home import AgentHome
from septet.agents.sandbox.shared_packages import shared_packages
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.warm import WarmProcess
from septet.errors import LockHeldError
from septet.system.durable import close_after

_log: Final = logging.getLogger(__name__)


def open_home(request: TurnRequest) -> tuple[OwnFolder, ...]:
    """Return the folders of the work order's own home; empty without a sandbox or an own home.

    Raises:
        AgentMissingError: The program was not found.
        OSError: The disk refused.
    """
    home, runtime = _home_of(request), request.runtime
    if home is None or not runtime.sandbox.confines:
        return ()
    return (*home.open(), *shared_packages(home.packages, request.adapter, runtime.host, runtime.sandbox))


def prepare_home(request: TurnRequest, session_id: str | None, *, anew: bool) -> None:
    """Prepare the work order's own home, if any, for a turn; the caller holds the writer's lock.

    Without a sandbox, a session that an earlier turn had in a sandbox comes back into the user's home. If the
    turn starts a process, the home is made `anew`, because no warm process lives there.

    Raises:
        LoginBusyError: Another agent is about to refresh the login.
        OSError: The disk refused.
    """
    home = _home_of(request)
    if home is None:
        return
    if request.runtime.sandbox.confines:
        home.prepare(session_id, request.limits.wall_seconds, anew=anew)
        return
    home.hide_keys()
    if session_id is not None:
        home.give_session_to_user(session_id)


def return_login(request: TurnRequest, *, holds_lock: bool = False) -> None:
    """Write a refreshed login back, and leave no login in a home without a process.

    If the disk or a lock refuses, the next start with this login, the next worker or the janitor writes it back.
    From now on the CLI's keys are masked: another process may have started the agent.
    """
    homes, runs = request.runtime.homes, request.runtime.runs
    if homes is None:
        return
    try:
        homes.take_logins_back(request.order_id, is_over=False)
        lock = None if holds_lock else runs.lock_writer(request.order_id)
        if holds_lock or lock is not None:
            with nullcontext() if lock is None else close_after(lock):
                if WarmProcess.living(runs, request.order_id) is None:
                    homes.take_logins_back(request.order_id, is_over=True)
    except (OSError, LockHeldError) as error:
        _log.warning("login_not_taken_back: %s", error)
    homes.of(request.order_id, request.adapter, request.runtime.host).hide_keys()


def _home_of(request: TurnRequest) -> AgentHome | None:
    runtime = request.runtime
    if runtime.homes is None:
        return None
    return runtime.homes.of(request.order_id, request.adapter, runtime.host)
