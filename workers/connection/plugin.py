"""What every client, worker, test and replay of ours has in common, given to the SDK in one place."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from temporalio.client import Interceptor as ClientInterceptor
from temporalio.plugin import SimplePlugin
from temporalio.worker import Interceptor as WorkerInterceptor
from temporalio.worker import WorkerConfig, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from workers.connection.data_converter import pydantic_values
from workers.connection.signal_input import SignalInputChecks

if TYPE_CHECKING:
    from workers.connection.payload_codec import (
        SealingCodec,  # where nothing is sealed, its cryptography is not imported
    )


class SeptetPlugin(SimplePlugin):
    """The converter of values for clients, workers and replays; for the latter workflows and their guard too.

    What observes them comes with it as interceptors: for a client's own calls, and for all of its workers.

    A client hands it on to its workers, which are not given it again; a replayer and a test's environment are.
    Workflows that are named beside it, such as a test's, stand for all. Activities, and the interceptor that keeps
    their tokens, stay with their queues: a plugin's go to every worker of its client.
    """

    def __init__(
        self,
        task_queue: str = "",
        interceptors: Sequence[ClientInterceptor | WorkerInterceptor] = (),
        codec: "SealingCodec | None" = None,
    ) -> None:
        """Take the queue of work orders: among a client's workers its own alone serves all workflows."""
        super().__init__(
            "septet",
            data_converter=partial(pydantic_values, codec),
            workflows=_default_workflows,
            workflow_runner=partial(_guarding_runner, codec is not None and codec.refuses_unsealed),
            interceptors=[*interceptors, SignalInputChecks()],
        )
        self._task_queue = task_queue

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Leave the workers of other queues the workflows that they are given."""
        own = config.get("workflows", ())
        configured = super().configure_worker(config)
        if config["task_queue"] != self._task_queue:
            configured["workflows"] = own
        return configured


def _default_workflows(workflows: Sequence[type] | None) -> Sequence[type]:
    """Import workflows where they are served or replayed: a client does without."""
    from workflows.board.board import Board
    from workflows.board.janitor import Janitor
    from workflows.budgets.account import Account
    from workflows.budgets.costs import Costs
    from workflows.budgets.quota import Quota
    from workflows.intake.comment import CommentCommandWorkflow
    from workflows.intake.intake import Intake
    from workflows.intake.tracker_session import TrackerPrompt, TrackerReport, TrackerSession
    from workflows.notifications.notification import NotificationWorkflow
    from workflows.pipeline import Pipeline
    from workflows.pull_request.pull_request import PullRequestWorkflow
    from workflows.work_order import WorkOrder

    return workflows or [
        WorkOrder,
        PullRequestWorkflow,
        NotificationWorkflow,
        Board,
        Janitor,
        Pipeline,
        Intake,
        CommentCommandWorkflow,
        TrackerSession,
        TrackerPrompt,
        TrackerReport,
        Account,
        Quota,
        Costs,
    ]


def _guarding_runner(refuses_unsealed: bool, runner: WorkflowRunner | None) -> WorkflowRunner:
    """Let the guard stand in for the SDK's sandbox; a runner that somebody has chosen stays."""
    if runner is not None and not isinstance(runner, SandboxedWorkflowRunner):
        return runner
    if refuses_unsealed:
        from workers.connection.seal_required import SealRequiringRunner

        return SealRequiringRunner()
    from workers.builds.workflow_guard import GuardedWorkflowRunner

    return GuardedWorkflowRunner()
