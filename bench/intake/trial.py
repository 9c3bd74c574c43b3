"""The trial: a server, three forges with two schedules each, deliveries, and killed workers."""

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import httpx
from fakes.forges.gitea import GiteaFake
from fakes.forges.github import GitHubFake
from fakes.forges.gitlab import GitLabFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import SEPTET, ForgeFake
from fakes.webhooks import SECRET, Sent
from pydantic import SecretStr
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, ScheduleHandle
from temporalio.service import RPCError

from bench.intake.deliveries import LABELS, Expected, in_some_order, make_deliveries
from bench.repository import make_repository
from bench.stage import Stage, stage, worker
from clients.http.serving import Door, serve_api
from clients.operations.operations import Operations
from clients.temporal.intakes import IntakeClient
from clients.temporal.work_orders import WorkOrders
from septet.contracts.intake import IntakeInput
from septet.state import StateDir
from workers.observing.logs import set_up_logs
from workers.server.ports import free_port

FAKES: Final[tuple[type[ForgeFake], ...]] = (GitHubFake, GitLabFake, GiteaFake)
_PROJECT: Final = "o/foo.js"
_AT_A_TIME: Final = 12
_PATIENCE_SECONDS: Final = 600.0
_FORGOTTEN: Final = 6
_ANSWER: Final = re.compile(r"<!-- septet: answer-(\d+) -->")
_DELIVERED: Final = ("WorkflowType = 'CommentCommand'", "WorkflowId STARTS_WITH 'intake/'")
"""The workflows that deliveries start; the passes of schedules begin again and again."""
_LIVES_SECONDS: Final = (2.0, 5.0)


@dataclass
class Outcome:
    """The results of all deliveries."""

    seed: int
    deliveries: int
    sent: int = 0
    refused: int = 0
    """The answers with another status than 200 and 202."""
    kills: int = 0
    issues: int = 0
    doubled_orders: int = 0
    """The issues with more than one work order."""
    missing_orders: int = 0
    strange_orders: int = 0
    """The work orders of issues that should not be taken."""
    commands: int = 0
    doubled_answers: int = 0
    missing_answers: int = 0
    strange_answers: int = 0
    """The answers to people without write access."""
    forgotten: int = 0
    """The work orders that were deleted from the server before each intake's next pass."""
    taken_again: int = 0
    why: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Return whether nothing went wrong."""
        orders = self.doubled_orders or self.missing_orders or self.strange_orders or self.taken_again
        answers = self.doubled_answers or self.missing_answers or self.strange_answers
        return not (orders or answers or self.refused)


async def try_intake(count: int, seed: int, kills: int) -> Outcome:
    """Send deliveries while workers are killed, and count the results."""
    outcome, chance = Outcome(seed, count), random.Random(seed)  # noqa: S311 -- the same seed sends the same
    async with stage() as on:
        set_up_logs(on.settings)
        with ExitStack() as stack:
            forges = [await asyncio.to_thread(_serve_forge, on, stack, kind) for kind in FAKES]
            deliveries, expected = make_deliveries(forges, count)
            names = [await _add_intake(on, forge, label) for forge in forges for label in LABELS]
            everything = in_some_order(deliveries, chance)
            outcome.sent = len(everything)
            killing = asyncio.create_task(_kill(on, _environ(on, forges), chance, kills, outcome))
            try:
                async with _api(on) as api:
                    await _send_all(api, everything, outcome)
                await killing
                async with worker(on, _environ(on, forges)):
                    await _settle(on, forges, expected)
                    await _judge(on, forges, expected, outcome)
                    await _forget(on, forges, names, outcome)
            finally:
                killing.cancel()
                with suppress(asyncio.CancelledError):
                    await killing
    return outcome


def _serve_forge(on: Stage, stack: ExitStack, kind: type[ForgeFake]) -> ForgeFake:
    repositories = on.settings.state_dir.parent / kind.name
    make_repository(repositories / f"{_PROJECT}.git", 5, 7, on.settings.git_env)
    return stack.enter_context(serving_forge(kind(project=_PROJECT, repositories=repositories)))


def _environ(on: Stage, forges: list[ForgeFake]) -> dict[str, str]:
    """Return the environment of a worker that knows the forges, and that starts no work order."""
    environ = {**on.environ, "SEPTET_HOST_LIMIT": "0", "SEPTET_SANDBOX": "none"}
    for forge in forges:
        variable = f"SEPTET_{forge.name.upper()}"
        environ |= {
            f"{variable}_HOSTS": forge.url.removeprefix("http://"),
            f"{variable}_API_URL": forge.url + forge.api_path,
            f"{variable}_TOKEN": forge.token,
        }
    return environ


def _address(forge: ForgeFake) -> str:
    return f"{forge.url}/{_PROJECT}.git"


async def _add_intake(on: Stage, forge: ForgeFake, label: str) -> str:
    intakes = IntakeClient(on.client, on.settings.task_queue)
    added = await intakes.add(IntakeInput(repository=_address(forge), label=label, every_seconds=10))
    return added.intake.id


@asynccontextmanager
async def _api(on: Stage) -> AsyncIterator[str]:
    """Serve the HTTP API with the secrets of all forges."""
    secrets = {f"{kind.name}_webhook_secret": SecretStr(SECRET) for kind in FAKES}
    settings = on.settings.model_copy(update=secrets)
    orders = WorkOrders(on.client, settings.task_queue)
    operations = Operations(orders, StateDir(settings.state_dir), settings.git_env)
    async with serve_api(operations, settings, Door(free_port(), "--api-port")) as served:
        yield served.address


async def _send_all(api: str, deliveries: list[Sent], outcome: Outcome) -> None:
    places = asyncio.Semaphore(_AT_A_TIME)

    async def send(delivery: Sent) -> None:
        async with places:
            answer: httpx.Response = await asyncio.to_thread(delivery.send, api)
        if answer.status_code not in {200, 202}:
            outcome.refused += 1
            outcome.why.append(answer.text[:200])

    await asyncio.gather(*map(send, deliveries))


async def _kill(on: Stage, environ: dict[str, str], chance: random.Random, kills: int, outcome: Outcome) -> None:
    """Let each worker live for some seconds, and kill it."""
    for _ in range(kills):
        async with worker(on, environ) as process:
            await asyncio.sleep(chance.uniform(*_LIVES_SECONDS))
            process.kill()
            outcome.kills += 1


async def _settle(on: Stage, forges: list[ForgeFake], expected: Expected) -> None:
    """Wait until all expected results exist and no workflow runs; missing results are counted later."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not await _is_settled(on, forges, expected):  # noqa: ASYNC110 -- the server does not notify
                await asyncio.sleep(1.0)


async def _is_settled(on: Stage, forges: list[ForgeFake], expected: Expected) -> bool:
    return not await _open_ones(on.client) and await _is_all_there(on, forges, expected)


async def _is_all_there(on: Stage, forges: list[ForgeFake], expected: Expected) -> bool:
    orders = await _orders(on.client)
    wanted = {(_address(forge), number) for forge in forges for number in expected.orders[forge.name]}
    return wanted <= set(orders)


async def _open_ones(client: Client) -> int:
    counts = [await client.count_workflows(f"{which} AND ExecutionStatus = 'Running'") for which in _DELIVERED]
    return sum(each.count for each in counts)


async def _orders(client: Client) -> dict[tuple[str, int], list[str]]:
    """Return the work orders by repository and issue."""
    found: dict[tuple[str, int], list[str]] = {}
    page = await WorkOrders(client).list(limit=1000)
    rows = list(page.tasks)
    while page.next is not None:
        page = await WorkOrders(client).list(limit=1000, after=page.next)
        rows += page.tasks
    for row in rows:
        found.setdefault((row.repository_url, int(row.issue_number)), []).append(row.id)
    return found


async def _judge(on: Stage, forges: list[ForgeFake], expected: Expected, outcome: Outcome) -> None:
    orders = await _orders(on.client)
    for forge in forges:
        wanted = {(_address(forge), number) for number in expected.orders[forge.name]}
        there = {key: ids for key, ids in orders.items() if key[0] == _address(forge)}
        outcome.issues += len(wanted)
        outcome.missing_orders += len(wanted - set(there))
        outcome.strange_orders += len(set(there) - wanted)
        outcome.doubled_orders += sum(len(ids) > 1 for ids in there.values())
        notes = [note for issue in forge.issues.values() for note in issue.notes if note.author == SEPTET]
        answered = [int(match[1]) for note in notes for match in _ANSWER.finditer(note.body)]
        commands = expected.answers[forge.name]
        outcome.commands += len(commands)
        outcome.missing_answers += len(commands - set(answered))
        outcome.strange_answers += len(set(answered) - commands)
        outcome.doubled_answers += len(answered) - len(set(answered))


async def _forget(on: Stage, forges: list[ForgeFake], names: list[str], outcome: Outcome) -> None:
    """Delete some work orders from the server, let each intake pass, and count the issues that are taken again."""
    orders = await _orders(on.client)
    labelled = [ids[0] for (url, number), ids in sorted(orders.items()) if _has_label(forges, url, number)][
        :: max(1, len(orders) // _FORGOTTEN)
    ]
    for order_id in labelled:
        await on.client.get_workflow_handle(order_id).terminate("forgotten")
    await asyncio.gather(*(_delete(on.client, order_id) for order_id in labelled))
    outcome.forgotten = len(labelled)
    await asyncio.gather(*(_pass_again(on.client, name) for name in names))
    again = {order_id for ids in (await _orders(on.client)).values() for order_id in ids} & set(labelled)
    outcome.taken_again = len(again)


async def _pass_again(client: Client, name: str) -> None:
    """Trigger a pass of an intake, and wait until it has passed at least once from now on."""
    schedule = client.get_schedule_handle(name)
    passes = (await schedule.describe()).info.num_actions
    await schedule.trigger()
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while await _actions_of(schedule) < passes + 2:  # noqa: ASYNC110 -- the server does not notify
            await asyncio.sleep(0.5)


async def _actions_of(schedule: ScheduleHandle) -> int:
    """Return a schedule's number of actions; 0 if a busy server does not know its namespace."""
    with suppress(RPCError):
        return (await schedule.describe()).info.num_actions
    return 0


def _has_label(forges: list[ForgeFake], url: str, number: int) -> bool:
    return any(_address(forge) == url and forge.issues[number].labels for forge in forges)


async def _delete(client: Client, workflow_id: str) -> None:
    request = DeleteWorkflowExecutionRequest(
        namespace=client.namespace, workflow_execution=WorkflowExecution(workflow_id=workflow_id)
    )
    await client.workflow_service.delete_workflow_execution(request)
    with suppress(RPCError):
        while True:  # until the workflow is deleted
            await client.get_workflow_handle(workflow_id).describe()
            await asyncio.sleep(0.1)
