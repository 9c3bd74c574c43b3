"""How many agents a worker runs at a time, what it may open for them, and how many workflows it caches."""

import resource
from collections.abc import Callable
from typing import Any, Final

from temporalio.worker import (
    FixedSizeSlotSupplier,
    ResourceBasedSlotConfig,
    ResourceBasedSlotSupplier,
    ResourceBasedTunerConfig,
    WorkerTuner,
)

from septet.agents.clis.registry import adapter_for
from septet.agents.processes.memory import memory_bytes
from septet.settings import MIB, Settings

_ENGINE_MIB: Final = 512
"""What the worker, an embedded server and the system take."""
_MOST: Final = 200
"""More were never tried on one worker."""
_FULL: Final = ResourceBasedTunerConfig(target_memory_usage=0.9, target_cpu_usage=1.0)
"""From here on no further agent starts beside the first."""
_OPEN_FILES, _OPEN_FILES_OF_AGENT = 128, 12
"""What a worker has open by itself, and at the most for each agent: streams, sockets, locks, pipes of git."""
MORE_OPEN_FILES: Final = (
    "Raise the limit (`ulimit -Hn`, LimitNOFILE= of its unit), or set SEPTET_MAX_AGENTS lower."
)
_ONE: Final = FixedSizeSlotSupplier(1)
"""For what the worker of agents is never given."""


def agents_at_once(settings: Settings, memory: Callable[[], int] = memory_bytes) -> int:
    """Return how many agents a worker runs at a time.

    By itself it runs as many of the default agent as the memory holds, one at least: tools that agents start, such
    as compilers, come on top of that.

    Args:
        settings: The worker's.
        memory: Tells the machine's memory, in bytes.

    Raises:
        AgentMissingError: There is no agent of the default's name.
        OSError: The system does not tell its memory.
    """
    if settings.max_agents != "auto":
        return settings.max_agents
    agent_mib = adapter_for(settings.agent).capabilities.memory_mib
    return min(max((memory() // MIB - _ENGINE_MIB) // agent_mib, 1), _MOST)


def allow_open_files(agents: int) -> int:
    """Let this process open as many files as so many agents take, and return how many the machine denies it."""
    wanted = _OPEN_FILES + _OPEN_FILES_OF_AGENT * agents
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return wanted - allowed


def agent_slots(settings: Settings) -> dict[str, Any]:
    """Return the options of the Temporal worker that runs agents.

    Where their number follows from the memory, the SDK's own tuner is a second guard: it starts no further agent
    while the memory is nearly full. It reserves nothing, so that alone it would let in too many.
    """
    most = agents_at_once(settings)
    if settings.max_agents != "auto":
        return {"max_concurrent_activities": most}
    agents = ResourceBasedSlotSupplier(ResourceBasedSlotConfig(minimum_slots=1, maximum_slots=most), _FULL)
    tuner = WorkerTuner.create_composite(
        workflow_supplier=_ONE, activity_supplier=agents, local_activity_supplier=_ONE, nexus_supplier=_ONE
    )
    return {"tuner": tuner}


def workflow_cache(settings: Settings) -> dict[str, Any]:
    """Return the options of the Temporal worker that runs workflows."""
    return {"max_cached_workflows": settings.cached_workflows}
