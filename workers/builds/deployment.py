"""The server's Worker Deployment of a queue: its known builds, and which of them gets work orders."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio.api.common.v1 import Payload
from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.enums.v1 import TaskQueueType, WorkerStatus
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.worker.v1 import WorkerHeartbeat
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkerDeploymentRequest,
    DescribeWorkerDeploymentVersionRequest,
    ListWorkersRequest,
    SetWorkerDeploymentCurrentVersionRequest,
    SetWorkerDeploymentRampingVersionRequest,
    UpdateWorkerDeploymentVersionMetadataRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

DECISIONS: Final = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
OPENINGS: Final = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
UNVERSIONED: Final = ""
"""The build id that stands for workers without a version."""
_PATCHES: Final = "septet-patches"
"""The key in a build's metadata; the value is a JSON list of the ids of the build's patches."""
_LEAST_INTERVAL: Final = timedelta(seconds=10)
"""The shortest time between two heartbeats of a worker."""
_FIRST_INTERVAL: Final = timedelta(seconds=60)
"""The longest time until a worker sends its second heartbeat."""
_SILENT: Final = 2
"""The number of missed heartbeats after which a worker counts as silent."""
_STOPPING: Final = frozenset({WorkerStatus.WORKER_STATUS_SHUTTING_DOWN, WorkerStatus.WORKER_STATUS_SHUTDOWN})


@dataclass(frozen=True, slots=True)
class ListedWorker:
    """A worker in the server's list; a stopped or killed worker remains listed for minutes."""

    instance: str
    identity: str
    build: str
    heard_at: datetime
    """The time of the worker's last heartbeat, by the worker's clock."""
    interval: timedelta
    is_stopping: bool
    opens: bool
    """Whether the worker can open workspaces, now or later; a drained worker cannot."""

    @classmethod
    def of(cls, heartbeat: WorkerHeartbeat) -> "ListedWorker":
        """Return the worker that has sent a heartbeat."""
        slots = heartbeat.activity_task_slots_info
        return cls(
            instance=heartbeat.worker_instance_key,
            identity=heartbeat.worker_identity,
            build=heartbeat.deployment_version.build_id,
            heard_at=heartbeat.heartbeat_time.ToDatetime(UTC),
            interval=max(heartbeat.elapsed_since_last_heartbeat.ToTimedelta() or _FIRST_INTERVAL, _LEAST_INTERVAL),
            is_stopping=heartbeat.status in _STOPPING,
            opens=slots.current_available_slots + slots.current_used_slots > 0,
        )

    @property
    def last_sign_at(self) -> datetime:
        """The latest time at which the worker may have polled; a later poll comes from another worker.

        For a stopping worker, this is the time of the last heartbeat; otherwise the time when the next heartbeat
        is due.
        """
        return self.heard_at if self.is_stopping else self.heard_at + self.interval

    def is_silent(self, now: datetime) -> bool:
        """Return whether the last heartbeat is so old that the worker must be dead."""
        return now - self.heard_at > _SILENT * self.interval

    def is_gone(self, now: datetime) -> bool:
        """Return whether the worker takes no more work, because it is stopping or silent."""
        return self.is_stopping or self.is_silent(now)


@dataclass(frozen=True, slots=True)
class Routing:
    """The current build, and the build that gets only a percentage of the work orders."""

    current: str = UNVERSIONED
    ramping: str = UNVERSIONED
    percentage: float = 0.0
    is_decided: bool = False
    """Whether a current build was ever set; also true if the current build is `UNVERSIONED` again."""
    token: bytes = b""
    """The server's token for this state; with it, the server refuses a change if the state has changed since."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """The server's deployment of a queue. Each method raises RPCError if the server refuses.

    If the server is busy with other changes of a deployment, a method repeats its request.
    """

    client: Client
    name: str

    async def routing(self) -> Routing:
        """Return which builds get work orders."""
        request = DescribeWorkerDeploymentRequest(namespace=self.client.namespace, deployment_name=self.name)
        try:
            answer = await self.client.workflow_service.describe_worker_deployment(request, retry=True)
        except RPCError as error:
            if error.status in {RPCStatusCode.NOT_FOUND, RPCStatusCode.UNIMPLEMENTED}:
                return Routing()
            raise
        config = answer.worker_deployment_info.routing_config
        return Routing(
            current=config.current_deployment_version.build_id,
            ramping=config.ramping_deployment_version.build_id,
            percentage=config.ramping_version_percentage,
            is_decided=config.HasField("current_version_changed_time"),
            token=answer.conflict_token,
        )

    async def has(self, build: str) -> bool:
        """Return whether the server has ever seen a worker of a build."""
        return await self._metadata(build) is not None

    async def patches_of(self, build: str) -> frozenset[str] | None:
        """Return the ids of the patches that a build has reported; `None` if it has not reported them yet."""
        entry = (await self._metadata(build) or {}).get(_PATCHES)
        return frozenset(json.loads(entry.data)) if entry is not None else None

    async def tell_patches(self, build: str, patches: Iterable[str]) -> None:
        """Record a build's patches in its metadata; call this only for a build that the server knows."""
        data = json.dumps(sorted(patches)).encode()
        request = UpdateWorkerDeploymentVersionMetadataRequest(
            namespace=self.client.namespace,
            deployment_version=self._version(build),
            upsert_entries={_PATCHES: Payload(metadata={"encoding": b"json/plain"}, data=data)},
            identity=self.client.identity,
        )
        await self.client.workflow_service.update_worker_deployment_version_metadata(request, retry=True)

    async def make_current(self, build: str, token: bytes = b"", *, unseen: bool = False) -> None:
        """Let a build get all work orders.

        Args:
            token: The token of the routing that was read; if the routing has changed since, the server refuses.
            unseen: Whether to set the build even if the server has not yet noticed a worker of the build.
        """
        request = SetWorkerDeploymentCurrentVersionRequest(
            namespace=self.client.namespace,
            deployment_name=self.name,
            build_id=build,
            conflict_token=token,
            identity=self.client.identity,
            ignore_missing_task_queues=unseen,
            allow_no_pollers=unseen,
        )
        await self.client.workflow_service.set_worker_deployment_current_version(request, retry=True)

    async def ramp(self, build: str, percentage: float) -> None:
        """Let a build get a percentage of work orders; with 0, the current build gets all work orders again."""
        request = SetWorkerDeploymentRampingVersionRequest(
            namespace=self.client.namespace,
            deployment_name=self.name,
            build_id=build if percentage else UNVERSIONED,
            percentage=percentage,
            identity=self.client.identity,
        )
        await self.client.workflow_service.set_worker_deployment_ramping_version(request, retry=True)

    async def last_polls(self, of: TaskQueueType.ValueType = DECISIONS) -> Mapping[str, datetime]:
        """Return when a worker of each build last began a poll; polls older than five minutes are omitted.

        An idle worker polls once a minute.

        Args:
            of: The kind of polls: `DECISIONS` for workflow tasks, or `OPENINGS` for tasks that open a workspace.
        """
        request = DescribeTaskQueueRequest(
            namespace=self.client.namespace, task_queue=TaskQueue(name=self.name), task_queue_type=of
        )
        polls: dict[str, datetime] = {}
        for poller in (await self.client.workflow_service.describe_task_queue(request, retry=True)).pollers:
            build, polled_at = poller.deployment_options.build_id, poller.last_access_time.ToDatetime(UTC)
            polls[build] = max(polled_at, polls.get(build, polled_at))
        return polls

    async def workers(self) -> tuple[ListedWorker, ...]:
        """Return the listed workers of the queue; empty if the server cannot list workers."""
        request = ListWorkersRequest(
            namespace=self.client.namespace, page_size=1000, query=f'TaskQueue="{self.name}"'
        )
        try:
            answer = await self.client.workflow_service.list_workers(request)
        except RPCError as error:
            if error.status is RPCStatusCode.UNIMPLEMENTED:
                return ()
            raise
        return tuple(ListedWorker.of(each.worker_heartbeat) for each in answer.workers_info)

    async def signs_of(self, build: str) -> set[tuple[str, datetime]]:
        """Return the last polls and heartbeats of a build's workers; a new entry proves that a worker lives.

        Compare a result only with other results of this method, because clocks differ.
        """
        polls, workers = await asyncio.gather(self.last_polls(), self.workers())
        heard = {
            (each.instance, each.heard_at) for each in workers if each.build == build and not each.is_stopping
        }
        return heard | {("poll", polled_at) for polled, polled_at in polls.items() if polled == build}

    async def _metadata(self, build: str) -> Mapping[str, Payload] | None:
        request = DescribeWorkerDeploymentVersionRequest(
            namespace=self.client.namespace, deployment_version=self._version(build)
        )
        try:
            answer = await self.client.workflow_service.describe_worker_deployment_version(request, retry=True)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise
        return answer.worker_deployment_version_info.metadata.entries

    def _version(self, build: str) -> WorkerDeploymentVersion:
        return WorkerDeploymentVersion(deployment_name=self.name, build_id=build)
