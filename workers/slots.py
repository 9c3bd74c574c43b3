"""The limits of a worker: how many agents run at once, open files, and cached workflows."""

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
"""The memory in MiB for everything except agents: the worker, an embedded server and the system."""
_MOST: Final = 200
"""The most agents with which one worker was tested."""
_FULL: Final = ResourceBasedTunerConfig(target_memory_usage=0.9, target_cpu_usage=1.0)
"""The shares of memory and CPU above which the worker starts no further agent."""
_OPEN_FILES, _OPEN_FILES_OF_AGENT = 128, 12
"""How many files a worker opens, and how many more for each agent."""
MORE_OPEN_FILES: Final = (
    "Raise the limit (`ulimit -Hn`, LimitNOFILE= of its unit), or set SEPTET_MAX_AGENTS lower."
)
_ONE: Final = FixedSizeSlotSupplier(1)
"""The slots for kinds of tasks that the worker of agents never gets."""


def agents_at_once(settings: Settings, memory: Callable[[], int] = memory_bytes) -> int:
    """Return the most agents that a worker runs at a time.

    By default, this is the number of default agents that fit into the memory, but at least 1 and at most 200. The
    memory of tools that agents start is not counted.

    Args:
        memory: Returns the machine's memory, in bytes.

    Raises:
        AgentMissingError: The settings' default agent does not exist.
        OSError: The system does not report its memory.
    """
    if settings.max_agents != "auto":
        return settings.max_agents
    agent_mib = adapter_for(settings.agent).capabilities.memory_mib
    return min(max((memory() // MIB - _ENGINE_MIB) // agent_mib, 1), _MOST)


def allow_open_files(agents: int) -> int:
    """Raise this process's limit of open files for `agents` agents; return how many files the new limit lacks."""
    wanted = _OPEN_FILES + _OPEN_FILES_OF_AGENT * agents
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return wanted - allowed


def agent_slots(settings: Settings) -> dict[str, Any]:
    """Return the options of the Temporal worker that runs agents.

    If the number of agents comes from the memory's size, the SDK's tuner is added, which starts no agent while
    memory is nearly full. The tuner alone would start too many, because it reserves no memory.
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
