"""Hosts without a free slot for an agent: what any host may take, they leave to the others for a moment."""

from typing import Final

from temporalio import activity

from activities.host.host import Host
from septet.errors import HostFullError

_PASSES: Final = 3
"""Attempts that full hosts pass on. Where all are full, the next one opens the workspace: so it is said at once
what is wrong with a repository or an issue, however long the agent has to wait for its slot."""
_PASSED_ON_SECONDS: Final = 0.05


def pass_on_if_full(host: Host) -> None:
    """Leave what comes by the shared queue to a host with a slot for its agent; called before anything is done.

    Raises:
        HostFullError: This host has none; the next attempt may be another one's.
    """
    info = activity.info()
    if info.task_queue != host.task_queue and info.attempt <= _PASSES and host.is_full:
        message = f"Host {host.id} has no free slot for an agent."
        raise HostFullError(message, retry_after_seconds=_PASSED_ON_SECONDS)
