"""A worker's successor takes over the activities of a dead or stopped worker."""

import asyncio
import signal
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from fakes.around import Call, around
from fakes.lock_holders import held_elsewhere
from fakes.unreached import away
from fakes.waiting import wait_until
from temporalio import activity, workflow
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetActivityRequest
from temporalio.client import Client, HeartbeatAsyncActivityInput, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from septet.agents.runs.folders import Run, Runs
from septet.agents.runs.records import RunKey, RunRecord
from workers.recovery.attempts import Successor
from workers.recovery.tokens import HeldToken, TokenFiles, read_token, running_attempt, tokens_in

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.law]

_UNKNOWN = HeldToken(b"of another server", RunKey("wo-1", "run-1", "step-1"), 1, 0.0)


@workflow.defn(name="OneStep", sandboxed=False)
class OneStep:
    """A work order of one activity, with a heartbeat time-out longer than a test."""

    @workflow.run
    async def run(self) -> str:
        answer: str = await workflow.execute_activity(
            "step",
            activity_id="step-1",
            result_type=str,
            schedule_to_close_timeout=timedelta(minutes=5),
            heartbeat_timeout=timedelta(minutes=2),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=100), backoff_coefficient=1),
        )
        return answer


@dataclass
class Orphaned:
    """An activity whose worker is lost at a given attempt; the next attempt answers."""

    client: Client
    root: Path
    left_at: int = 1
    left: list[HeldToken] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    handle: WorkflowHandle[OneStep, str] | None = None

    @activity.defn(name="step")
    async def step(self) -> str:
        """Fail, leave the activity without an answer, or answer."""
        held = running_attempt()
        self.numbers.append(held.attempt)
        if not self.left:
            if held.attempt < self.left_at:
                raise ApplicationError("again")
            self.left.append(held)
            activity.raise_complete_async()
        return "taken over"

    async def is_taken_over(self) -> bool:
        """Let a successor look once, and wait for the answer of the next attempt."""
        assert self.handle is not None
        assert await self.successor.look() == 1
        return await asyncio.wait_for(self.handle.result(), 60) == "taken over"

    @property
    def runs(self) -> Runs:
        return Runs(self.root / "runs")

    @property
    def tokens(self) -> Path:
        folder = self.root / "tokens"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def successor(self) -> Successor:
        return Successor(self.client, self.tokens, self.runs, stopped_seconds=0)

    def token(self) -> Path:
        """Write the token as a dead worker leaves it."""
        path = self.tokens / "a.token"
        path.write_bytes(msgspec.json.encode(self.left[0]))
        return path

    async def reset(self) -> None:
        assert self.handle is not None
        await self.client.workflow_service.reset_activity(
            ResetActivityRequest(
                namespace=self.client.namespace,
                execution=WorkflowExecution(workflow_id=self.handle.id),
                id="step-1",
            )
        )

    def run(self, place_id: str = "") -> Run:
        """Return a new run of the lost activity, in a lane or in its own workspace."""
        key = self.left[0].key
        record = RunRecord(key, 1, "step", "scripted", "first", "mark", (), (), "/", {}, "")
        run, lock = self.runs.create(place_id or key.workflow_id, 1, record, b"")
        with open(lock, "rb"):
            return run


@asynccontextmanager
async def orphaned(client: Client, root: Path, left_at: int = 1, order_id: str = "") -> AsyncIterator[Orphaned]:
    """Start an activity and lose its worker."""
    orphan, queue = Orphaned(client, root, left_at), f"queue-{uuid.uuid4().hex}"
    order_id = order_id or f"wo-{uuid.uuid4().hex[:8]}"
    async with Worker(
        client,
        task_queue=queue,
        workflows=[OneStep],
        activities=[orphan.step],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        orphan.handle = await client.start_workflow(OneStep.run, id=order_id, task_queue=queue)
        await wait_until(lambda: orphan.left)
        yield orphan


async def test_what_a_living_worker_holds_is_not_taken(client: Client, tmp_path: Path) -> None:
    """A successor leaves a token that a living process has locked."""
    with TokenFiles(tmp_path).hold(_UNKNOWN):
        assert await Successor(client, tmp_path, Runs(tmp_path / "runs"), stopped_seconds=0).look() == 0
        assert len(list(tmp_path.glob("*.token"))) == 1


async def test_a_tokens_file_serves_the_next_activity(client: Client, tmp_path: Path) -> None:
    """A token's file is empty between two activities, and no successor takes it from a living worker."""
    files, successor = (
        TokenFiles(tmp_path),
        Successor(client, tmp_path, Runs(tmp_path / "runs"), stopped_seconds=0),
    )
    with files.hold(_UNKNOWN), files.hold(_UNKNOWN):
        both = tokens_in(tmp_path)
    assert [read_token(path) for path in both] == [None, None]
    assert await successor.look() == 0
    with files.hold(_UNKNOWN):
        assert tokens_in(tmp_path) == both
        assert sorted(read_token(path) is not None for path in both) == [False, True]
    files.close()
    assert tokens_in(tmp_path) == []


async def test_a_tokens_file_that_was_taken_serves_no_more(tmp_path: Path) -> None:
    """If a successor has taken a stopped worker's file, the worker's next activity gets a new file."""
    files = TokenFiles(tmp_path)
    with files.hold(_UNKNOWN):
        tokens_in(tmp_path)[0].unlink()
    with files.hold(_UNKNOWN):
        assert [read_token(path) for path in tokens_in(tmp_path)] == [_UNKNOWN]


@pytest.mark.parametrize("content", [msgspec.json.encode(_UNKNOWN), b"half a tok"])
async def test_a_token_that_nobody_knows_is_thrown_away(client: Client, tmp_path: Path, content: bytes) -> None:
    """A worker starts in spite of an old token, a token of another server, and half a token."""
    (tmp_path / "a.token").write_bytes(content)
    assert await Successor(client, tmp_path, Runs(tmp_path / "runs")).look() == 0
    assert list(tmp_path.glob("*.token")) == []


async def test_the_activity_of_a_dead_worker_is_taken_over(client: Client, tmp_path: Path) -> None:
    """The next attempt begins long before the heartbeat time-out, and no run is set aside."""
    async with orphaned(client, tmp_path) as orphan:
        run = orphan.run()
        token = orphan.token()
        assert await orphan.is_taken_over()
    assert not token.exists()
    assert not run.set_aside


async def test_a_token_is_kept_while_the_server_cannot_take_it(client: Client, tmp_path: Path) -> None:
    """A server that is still starting causes no time-out: the token serves as soon as the server answers."""

    async def refuse(_really: Call, _beat: HeartbeatAsyncActivityInput) -> None:
        raise away()

    async with orphaned(client, tmp_path) as orphan:
        token, starting = orphan.token(), around(client, heartbeat_async_activity=refuse)
        assert await Successor(starting, orphan.tokens, orphan.runs).look() == 0
        assert token.exists()
        assert await orphan.is_taken_over()


@pytest.mark.parametrize(
    ("left_at", "ending", "place"),
    [(1, "", ""), (3, "", ""), (1, "-issue", "-executor-1"), (1, "/pr", "")],
    ids=["first attempt", "third attempt", "lane", "round"],
)
async def test_a_reset_while_no_worker_lives_is_heeded(
    client: Client, tmp_path: Path, left_at: int, ending: str, place: str
) -> None:
    """A reset attempt's runs are set aside, though the server may not know the attempt, or its runs lie in a lane."""
    base = f"pl-{uuid.uuid4().hex[:8]}"
    async with orphaned(client, tmp_path, left_at, f"{base}{ending}") as orphan:
        run = orphan.run(f"{base}{place}")
        orphan.token()
        await orphan.reset()
        assert await orphan.is_taken_over()
    assert orphan.numbers == [*range(1, left_at + 1), 2]
    assert run.set_aside


async def test_a_stopped_worker_keeps_nothing(client: Client, tmp_path: Path) -> None:
    """A successor takes over the activity of a stopped process after the given time, and none of a running process."""
    async with orphaned(client, tmp_path) as orphan:
        with held_elsewhere(orphan.token()) as holder:
            assert await orphan.successor.look() == 0
            holder.send_signal(signal.SIGSTOP)
            await wait_until(lambda: _state(holder.pid) == "T")
            patient = Successor(client, orphan.tokens, orphan.runs, stopped_seconds=600)
            assert await patient.look() == 0
            assert await orphan.is_taken_over()


async def test_an_attempt_says_which_it_is(client: Client, tmp_path: Path) -> None:
    """The token names the activity, the attempt and the second of its start."""
    async with orphaned(client, tmp_path) as orphan:
        (held,) = orphan.left
        orphan.token()
        assert await orphan.successor.look() == 1
    assert orphan.handle is not None
    assert (held.key.workflow_id, held.key.activity_id, held.attempt) == (orphan.handle.id, "step-1", 1)
    assert abs(datetime.fromtimestamp(held.started_at, UTC) - datetime.now(UTC)) < timedelta(minutes=5)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
