"""Push a host's snapshots to the checkpoint remote, from which another host can continue if this host is lost."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from activities.host.host import Host
from septet.agents.clis.registry import adapter_for
from septet.agents.runs.sessions import pack_session, unpack_session
from septet.errors import GitUnavailableError, SeptetError
from septet.git.checkpoints import keep as chain
from septet.git.checkpoints.checkpoint_remote import ORIGIN, CheckpointRef, checkpoint_ref_at, checkpoint_ref_in
from septet.git.checkpoints.keep import ChainState, read_file
from septet.git.checkpoints.move import WorkspaceMove
from septet.git.engine.address import parse_address
from septet.git.engine.place import Place, record_of
from septet.git.engine.remote import Remote
from septet.git.vault.vault import vault_at

_SESSION: Final = "session"

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class KeptSession:
    """An agent's session that is pushed with the snapshots."""

    agent: str
    id: str


def keep(host: Host, place: Place, session: KeptSession | None = None, *, claims: bool = False) -> tuple[str, ...]:
    """Push new snapshots to the checkpoint remote, if the settings name one; return failures as warnings.

    After a failure, the next call pushes the missing snapshots.

    Args:
        claims: Whether the workspace was just opened here: this host then claims the work order on the remote.
    """
    if host.settings.checkpoint_remote is None:
        return ()
    try:
        ref = checkpoint_ref(host, place)
        if claims:
            chain.claim(place, ref, host.id)
        chain.keep(place, ref, host.id, _sealed_session(host, place, ref, session) if session else {})
    except (SeptetError, OSError) as error:
        _log.warning("checkpoint_not_kept", error=str(error))
        return (f"the checkpoint was not copied to the checkpoint remote: {str(error)[:150]}",)
    return ()


def bring_session(host: Host, move: WorkspaceMove, checkpoint: ChainState, agents: tuple[str, ...]) -> None:
    """Unpack the last pushed session for this host's CLI; if no session was pushed, the step begins a new session.

    Args:
        agents: The agents that may own the session; a session can be decrypted only with its owner's name.
    """
    key = host.settings.checkpoint_key
    sealed = read_file(vault_at(move.place), checkpoint, _SESSION)
    if key is None or sealed is None:
        return
    from septet.keys.key_ring import unseal  # ten megabytes, which only a worker with a checkpoint key needs

    errors = []
    for agent in agents:
        try:
            packed = unseal(key.get_secret_value(), sealed, f"{move.checkpoint_ref.ref} {agent}")
            adapter = adapter_for(agent)
            unpack_session(adapter, packed, host.agents, host.sessions(move.place, adapter))
        except (SeptetError, OSError) as error:
            errors.append(str(error))
        else:
            return
    _log.warning("session_not_brought", error=errors[0])


def _sealed_session(host: Host, place: Place, ref: CheckpointRef, session: KeptSession) -> dict[str, bytes]:
    """Return a session's encrypted files; empty without a key, or if others read the remote (`origin`)."""
    key = host.settings.checkpoint_key
    if key is None or host.settings.checkpoint_remote == ORIGIN:
        return {}
    from septet.keys.key_ring import seal  # as above

    adapter = adapter_for(session.agent)
    packed = pack_session(adapter, session.id, host.agents, host.sessions(place, adapter))
    about = f"{ref.ref} {session.agent}"
    return {_SESSION: seal(key.get_secret_value(), packed, about)} if packed is not None else {}


def expect_hold(host: Host, place: Place) -> None:
    """Raise if the work order has moved to another host; do nothing if the checkpoint remote cannot be read.

    Raises:
        MovedError: The work order has moved: this host must not push its work.
    """
    if host.settings.checkpoint_remote is None:
        return
    try:
        chain.expect_hold(place, checkpoint_ref(host, place), host.id)
    except GitUnavailableError as error:
        # No host can have moved the work order while the remote is out of reach, and each push has its own lease.
        _log.warning("checkpoint_remote_not_reached", error=str(error))


def checkpoint_ref(host: Host, place: Place, opened_by: str | None = None) -> CheckpointRef:
    """Return the git ref of a work order's snapshots on the checkpoint remote.

    Args:
        opened_by: The run that first opened the workspace; by default, the run in the work order's record.

    Raises:
        InvalidInputError: `SEPTET_CHECKPOINT_REMOTE` is no address.
        WorkspaceError: The record cannot be read.
    """
    wanted = host.settings.checkpoint_remote or ""
    run_id = opened_by if opened_by is not None else record_of(place).first_run_id
    if wanted == ORIGIN:
        return checkpoint_ref_at(
            Remote(place.destination, place.env, host.forges.token_for(place.destination)), place, run_id
        )
    address = parse_address(wanted, home=Path.home())
    if address.path is not None:
        return checkpoint_ref_in(address.path, place, run_id)
    return checkpoint_ref_at(Remote(address.url, place.env, host.forges.token(address)), place, run_id)
