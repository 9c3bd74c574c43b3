import subprocess
import sys

import pytest
from temporalio.worker import WorkerTuner

from septet.settings import MIB, Settings
from workers.slots import agent_slots, agents_at_once


@pytest.mark.parametrize(
    ("agent", "memory_mib", "agents"),
    [
        ("claude", 4096, 8),
        ("opencode", 4096, 5),
        ("codex", 4096, 17),
        ("claude", 600, 1),
        ("claude", 64, 1),
        ("codex", 1024 * 1024, 200),
    ],
)
def test_by_itself_a_worker_runs_what_the_memory_holds(agent: str, memory_mib: int, agents: int) -> None:
    """The default number of agents follows from the memory and the agent's need, between 1 and 200."""
    settings = Settings(max_agents="auto", agent=agent, environ={})
    assert agents_at_once(settings, lambda: memory_mib * MIB) == agents


def test_a_number_is_taken_as_it_is() -> None:
    """A given number of agents counts without a look at the memory."""
    assert agent_slots(Settings(max_agents=7, environ={})) == {"max_concurrent_activities": 7}


def test_nearly_full_memory_stops_further_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `auto` the SDK looks at the used memory, and gives from one slot to the number that the memory holds."""
    monkeypatch.setattr(WorkerTuner, "create_composite", lambda **suppliers: suppliers)
    settings = Settings(max_agents="auto", environ={})
    supplier = agent_slots(settings)["tuner"]["activity_supplier"]
    assert supplier.tuner_config.target_memory_usage < 1
    most = agents_at_once(settings)
    assert (supplier.slot_config.minimum_slots, supplier.slot_config.maximum_slots) == (1, most)


@pytest.mark.parametrize(("hard", "told"), [(1400, "0 1328"), (1000, "328 1000")])
def test_a_worker_may_open_what_its_agents_take(hard: int, told: str) -> None:
    """The limit of open files is raised as far as the machine allows, and the missing number is returned."""
    program = (
        "import resource; from workers.slots import allow_open_files as allow; "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (300, {hard})); "
        "print(allow(100), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == told
