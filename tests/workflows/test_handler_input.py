"""Inputs from Temporal's own command line, which no client of ours has checked."""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from temporalio import workflow
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.worker import Worker

from clients.temporal.work_orders import WorkOrders
from septet.budgets.account import AccountState, AccountView, Grant
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task
from workers.connection.plugin import SeptetPlugin, takes
from workflows.budgets import Account
from workflows.wire.search_attributes import REPOSITORY
from workflows.work_order.workflow import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHIN_SECONDS = 60
ORDER = WorkOrderInput(repository="/app", title="Totals are wrong", stage="collected")


@pytest_asyncio.fixture(loop_scope="session")
async def task_queue(client: Client) -> AsyncIterator[str]:
    """The queue of a worker that serves work orders and accounts."""
    queue = f"queue-{uuid.uuid4().hex}"
    async with Worker(client, task_queue=queue, workflows=[WorkOrder, Account]):
        yield queue


async def account_of(client: Client, task_queue: str) -> WorkflowHandle[Any, Any]:
    opened = AccountState(scope="project/app")
    return await client.start_workflow("Account", opened, id=f"account-{uuid.uuid4().hex}", task_queue=task_queue)


def definitions() -> list[Any]:
    return [
        workflow._Definition.must_from_class(each) for each in SeptetPlugin().configure_replayer({})["workflows"]
    ]


async def test_a_signal_that_its_handler_does_not_take_is_dropped(
    client: Client, task_queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A signal without input, with another input or with too many is logged, and its workflow still answers."""
    order = client.get_workflow_handle((await WorkOrders(client, task_queue).put(ORDER)).id)
    account = await account_of(client, task_queue)
    with caplog.at_level(logging.WARNING):
        signals: tuple[tuple[object, ...], ...] = ((), (None,), (b"project/app",), ("project/app", "twice"))
        for args in signals:
            await order.signal("budget_open", args=args)
            await account.signal("settle", args=args)
        task = await asyncio.wait_for(order.query("work_order", result_type=Task), WITHIN_SECONDS)
        view = await asyncio.wait_for(account.query("account", result_type=AccountView), WITHIN_SECONDS)
    assert (task.stage, view.spent.turns) == ("collected", 0)
    dropped = [record.getMessage() for record in caplog.records if "dropping the signal" in record.getMessage()]
    assert [sum(f"signal {name} " in each for each in dropped) for name in ("budget_open", "settle")] == [4, 4]
    await order.terminate()
    await account.terminate()


async def test_what_every_signal_takes_can_be_checked() -> None:
    """A handler has the name of its signal, and an input type that differs from bytes and from no input."""
    optional = set()
    for each in definitions():
        for name, signal in each.signals.items():
            handler = getattr(object.__new__(each.cls), name)
            assert handler.__func__ is signal.fn
            if signal.arg_types:
                assert not takes(handler, [b""])
                optional |= {f"{each.name}.{name}"} if takes(handler, [None]) else set()
    assert optional == {"PullRequest.nudge"}


async def test_every_update_has_a_validator() -> None:
    """Without a validator, the SDK accepts each update, and an error of its handler stops the workflow."""
    assert [each.name for each in definitions() for update in each.updates.values() if not update.validator] == []


async def test_an_update_of_an_account_without_input_is_rejected(client: Client, task_queue: str) -> None:
    """A call without its input is refused with `InvalidInput`, and the account answers the next call."""
    account = await account_of(client, task_queue)
    calls: tuple[tuple[object, ...], ...] = ((), ({},), ("x", "y"))
    for args in calls:
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await account.execute_update("reserve", args=args)
        assert getattr(refused.value.cause, "type", "") == "InvalidInput"
    call = {"key": "turn", "order_id": "wo-1", "of_a_later_release": 1}
    assert (await account.execute_update("reserve", call, result_type=Grant)).granted
    await account.terminate()


async def test_a_password_in_an_address_is_in_no_search_attribute(client: Client, task_queue: str) -> None:
    """A start without a client of ours also leaves the password out, and shows the address's project on the board."""
    order = {
        "repository": "https://ann:hunter2pass@git.example/o/r",
        "title": "Totals are wrong",
        "stage": "collected",
    }
    started = await client.start_workflow("WorkOrder", order, id=f"wo-{uuid.uuid4().hex}", task_queue=task_queue)
    task = await started.query("work_order", result_type=Task)
    described = await started.describe()
    assert described.typed_search_attributes[REPOSITORY] == task.repository_url == "https://git.example/o/r"
    assert task.project == "o/r"
    await started.terminate()
