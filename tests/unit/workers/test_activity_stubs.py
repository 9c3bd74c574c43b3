from collections.abc import Callable
from pathlib import Path
from typing import Any

from fakes.step_lab import settings_of
from temporalio import activity

from workers.registry import parts_of
from workflows.wire import activity_stubs
from workflows.wire.activity_stubs import NOTHING, STEPS, ActivityStub

STUBS = [*STEPS.values(), *(each for each in vars(activity_stubs).values() if isinstance(each, ActivityStub))]


async def test_workflows_and_workers_mean_the_same_by_each_activity(tmp_path: Path) -> None:
    """Each activity of the workers has a stub with its name, input and result, and each stub has an activity."""
    async with parts_of(settings_of(tmp_path)) as parts:
        queues = (parts.shared, parts.own, parts.control)
        served = {_signature_of(each) for queue in queues for each in queue.values()}
    stubs = [(stub.name, str(stub.input_type), str(stub.result_type)) for stub in STUBS]
    assert sorted(stubs) == sorted(served)


def _signature_of(served: Callable[..., Any]) -> tuple[str, str, str]:
    definition = activity._Definition.must_from_callable(served)
    (takes,) = definition.arg_types or [NOTHING]
    return str(definition.name), str(takes), str(definition.ret_type)
