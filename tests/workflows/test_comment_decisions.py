"""A command in a comment whose first attempt is lost after it has acted counts once, on a real server."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from fakes.activities import Doubles, done, ended
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.repositories import make_origin
from fakes.step_lab import settings_of
from fakes.waiting import wait_until
from pydantic import SecretStr
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from activities.intake.issues import order_of_issue
from clients.executions.index import runs_of
from clients.temporal.comment_commands import comment_decisions
from clients.temporal.decisions import OrderDecisions
from clients.temporal.resets import claim
from clients.temporal.work_orders import WorkOrders
from septet.contracts.decisions import MoveCall, RetryCall, Target
from septet.contracts.forge_events import CommentCommand, CommentWritten
from septet.contracts.intake import CommandAnswer, CommentCall, CommenterStanding, IntakeInput
from septet.contracts.names import Stage, Status, Step, Verdict
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task
from septet.errors import SeptetError
from septet.git.engine.address import parse_address
from workers.registry import parts_of
from workflows.intake import CommentCommandWorkflow
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.work_order.workflow import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

REPOSITORY = "https://github.com/o/r"
WHO = "ada on github"
WITHIN_SECONDS = 60
Happens = Callable[[WorkOrders, str], Awaitable[object]]
"""An event of a work order between two attempts."""


async def nothing(orders: WorkOrders, order_id: str) -> None:
    del orders, order_id


@dataclass
class Commands:
    """A worker that obeys commands for one work order; each first attempt is lost after it has acted."""

    client: Client
    doubles: Doubles
    order_id: str = ""
    between: Happens = nothing
    refusals: list[str] = field(default_factory=list)
    """The messages of retryable refusals of attempts."""

    @property
    def orders(self) -> WorkOrders:
        return WorkOrders(self.client, self.doubles.task_queue)

    @activity.defn(name="check_commenter")
    async def check_commenter(self, call: CommentCall) -> CommenterStanding:
        del call
        return CommenterStanding(is_obeyed=True)

    @activity.defn(name="obey_comment")
    async def obey_comment(self, call: CommentCall) -> CommandAnswer:
        decide = comment_decisions(self.doubles.task_queue)
        try:
            task = await decide(self.client, self.order_id, call.command, WHO)
            text = f"{task.status.value}, {task.stage.value}"
        except SeptetError as error:
            if error.retryable:
                self.refusals.append(error.message)
                raise
            text = error.message
        if activity.info().attempt == 1:
            await self.between(self.orders, self.order_id)
            raise ConnectionError("the worker died")
        return CommandAnswer(repository=REPOSITORY, number=1, comment_id=1, text=text)

    @activity.defn(name="answer_comment")
    async def answer_comment(self, answer: CommandAnswer) -> None:
        self.answer = answer.text

    async def obey(self, command: CommentCommand, between: Happens) -> str:
        self.between = between
        event = CommentWritten(
            forge="github", repository=REPOSITORY, number=1, comment_id=1, author="ada", body="/septet"
        )
        call = CommentCall(event=event, command=command, intake=IntakeInput(repository=REPOSITORY))
        name, queue = f"comment/github/o/r/{uuid.uuid4().hex}", self.doubles.task_queue
        obeyed = self.client.execute_workflow("CommentCommand", call, id=name, task_queue=queue)
        assert await asyncio.wait_for(obeyed, WITHIN_SECONDS)
        return self.answer

    async def start(self, **fields: object) -> str:
        order = WorkOrderInput.model_validate({"repository": "/app", "title": "Totals are wrong", **fields})
        self.order_id = (await self.orders.put(order)).id
        return self.order_id

    async def runs(self) -> int:
        """Return the number of runs of the work order, after the server lists its last run as closed."""
        found = await wait_until(
            lambda: runs_of(self.client, [self.order_id]), lambda runs: all(run.close_time for run in runs)
        )
        return len(found)


@pytest_asyncio.fixture(loop_scope="session")
async def commands(client: Client, doubles: Doubles) -> AsyncIterator[Commands]:
    commands = Commands(client, doubles)
    async with Worker(
        client,
        task_queue=doubles.task_queue,
        workflows=[WorkOrder, PullRequestWorkflow, CommentCommandWorkflow],
        activities=[
            *doubles.activities(),
            commands.check_commenter,
            commands.obey_comment,
            commands.answer_comment,
        ],
    ):
        yield commands


def waits(task: Task) -> bool:
    return task.status is Status.WAITING


def fails(doubles: Doubles) -> None:
    """Let each work order fail at its first step."""
    doubles.steps[Step.CLASSIFY_ISSUE] = [lambda call: ended(call, Verdict.FAILED, "no such model")]


async def test_a_plan_that_is_made_meanwhile_is_not_rejected(doubles: Doubles, commands: Commands) -> None:
    """A rejection without a plan's digest counts for the plan that waited; the plan made after it still waits."""

    async def plans_again(orders: WorkOrders, order_id: str) -> None:
        await wait_until(
            lambda: orders.get(order_id), lambda task: task.plan_path == "specs/other.md" and waits(task)
        )

    doubles.steps[Step.FIND_PLAN_FILE] = [done, lambda call: done(call, "specs/other.md")]
    order_id = await commands.start(approve_plan=True)
    await wait_until(lambda: commands.orders.get(order_id), waits)
    answer = await commands.obey(CommentCommand(verb="reject", words="Too long."), plans_again)
    assert answer == "waiting, executing"
    assert [move.who for move in await commands.orders.history(order_id)].count(WHO) == 1
    assert doubles.names().count("build_plan") == 2
    await OrderDecisions(commands.orders).cancel(order_id)


async def test_a_work_order_that_fails_again_meanwhile_is_not_retried_again(
    doubles: Doubles, commands: Commands
) -> None:
    """A retry counts for one failure: the run that it starts fails, and is not retried."""

    async def fails_again(orders: WorkOrders, order_id: str) -> None:
        await wait_until(lambda: orders.get(order_id), lambda task: task.status is Status.FAILED)

    fails(doubles)
    await commands.orders.wait(await commands.start())
    assert await commands.obey(CommentCommand(verb="retry"), fails_again) == "failed, blocked"
    assert await commands.runs() == 2


async def test_one_that_was_blocked_on_the_board_is_retried_once(doubles: Doubles, commands: Commands) -> None:
    """A retry starts a blocked work order; if the work order fails before the second attempt, it is not started again."""

    async def has_its_turn(orders: WorkOrders, order_id: str) -> None:
        await orders.handle(order_id).signal("begin")
        await orders.wait(order_id)

    fails(doubles)
    order_id = await commands.start(stage="collected")
    await wait_until(lambda: commands.orders.get(order_id), lambda task: task.stage is Stage.COLLECTED)
    await OrderDecisions(commands.orders).move(order_id, MoveCall(to=Target.BLOCKED))
    assert await commands.obey(CommentCommand(verb="retry"), has_its_turn) == "failed, blocked"
    assert await commands.runs() == 1


async def test_one_that_somebody_takes_up_again_meanwhile_is_not_cancelled_again(commands: Commands) -> None:
    """A cancel counts for the run of its time: a person's later retry continues, and the answer names the retry."""

    async def is_retried(orders: WorkOrders, order_id: str) -> None:
        await OrderDecisions(orders).retry(order_id, RetryCall(who="bob"))

    order_id = await commands.start(approve_plan=True)
    await wait_until(lambda: commands.orders.get(order_id), waits)
    answer = await commands.obey(CommentCommand(verb="cancel"), is_retried)
    assert answer == f"{order_id} was taken up again after this command."
    await wait_until(lambda: commands.orders.get(order_id), waits)
    await OrderDecisions(commands.orders).cancel(order_id)


@pytest.mark.parametrize("verb", ["approve", "cancel"])
async def test_what_was_decided_before_the_attempt_is_answered_as_it_is(commands: Commands, verb: str) -> None:
    """A second attempt finds the decision of the first, and answers with the state of the work order."""

    async def closes(orders: WorkOrders, order_id: str) -> None:
        await orders.wait(order_id)

    order_id = await commands.start(approve_plan=True)
    task = await wait_until(lambda: commands.orders.get(order_id), waits)
    plan = task.plan_sha256 if verb == "approve" else None
    command = CommentCommand.model_validate({"verb": verb, "plan_sha256": plan})
    answer = await commands.obey(command, closes)
    assert answer == {"approve": "completed, review", "cancel": "cancelled, done"}[verb]


async def test_a_retry_waits_for_one_that_was_killed_at_its_claim(
    client: Client, doubles: Doubles, commands: Commands
) -> None:
    """An attempt that finds a claim on the work order, such as a killed attempt's claim, tries again."""
    fails(doubles)
    order_id = await commands.start()
    await commands.orders.wait(order_id)
    async with claim(client, order_id):
        obeyed = asyncio.ensure_future(commands.obey(CommentCommand(verb="retry"), nothing))
        await wait_until(lambda: commands.refusals)
    await obeyed
    assert await commands.runs() == 2


async def test_a_second_attempt_is_about_the_same_work_order(
    client: Client, doubles: Doubles, tmp_path: Path
) -> None:
    """If a person starts another work order for the issue after the first attempt, the command does not act on it."""
    make_origin(tmp_path / "o", "foo.js.git")
    orders, commanded = WorkOrders(client, doubles.task_queue), list[str]()
    with serving_forge(GitHubFake(repositories=tmp_path)) as forge:
        url, number = f"{forge.url}/{forge.project}.git", forge.add_issue("Totals are wrong")
        address = parse_address(url, home=tmp_path)

        async def start() -> str:
            order = WorkOrderInput(repository=url, issue=number, approve_plan=True)
            order_id = (await orders.put(order)).id
            await wait_until(lambda: order_of_issue(client, address, number), lambda newest: newest == order_id)
            return order_id

        async def decide(_client: Client, order_id: str, _command: CommentCommand, _who: str) -> Task:
            commanded.append(order_id)
            if activity.info().attempt == 1:
                await start()
                raise ConnectionResetError("the worker died")
            return await orders.get(order_id)

        settings = settings_of(
            tmp_path,
            github_hosts=(forge.url.removeprefix("http://"),),
            github_api_url=forge.url + forge.api_path,
            github_token=SecretStr(forge.token),
            task_queue=doubles.task_queue,
        )
        async with (
            parts_of(settings, decide=decide) as parts,
            Worker(
                client,
                task_queue=doubles.task_queue,
                workflows=[WorkOrder, PullRequestWorkflow, CommentCommandWorkflow],
                activities=[
                    *doubles.activities(),
                    *(parts.shared[name] for name in ("check_commenter", "obey_comment", "answer_comment")),
                ],
            ),
        ):
            first = await start()
            event = CommentWritten(
                forge="github", repository=url, number=number, comment_id=1, author="ada", body="/septet cancel"
            )
            command = CommentCommand(verb="cancel")
            call = CommentCall(event=event, command=command, intake=IntakeInput(repository=url))
            name = f"comment/github/{uuid.uuid4().hex}"
            obeyed = client.execute_workflow("CommentCommand", call, id=name, task_queue=doubles.task_queue)
            assert await asyncio.wait_for(obeyed, WITHIN_SECONDS)
            assert commanded == [first, first]
            for order in {first, await order_of_issue(client, address, number)}:
                await client.get_workflow_handle(str(order)).terminate()
