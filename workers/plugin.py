"""What every client, worker, test and replay of ours has in common, given to the SDK in one place."""

from collections.abc import Sequence
from dataclasses import replace

from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter, DefaultFailureConverter
from temporalio.plugin import SimplePlugin
from temporalio.worker import WorkerConfig

from workers.failure_converter import FailureConverter


class SeptetPlugin(SimplePlugin):
    """The converter of values for clients, workers and replays, and the workflows for workers and replays.

    A client hands it on to its workers, which are not given it again; a replayer and a test's environment are.
    Workflows that are named beside it, such as a test's, stand for all. Activities, and the interceptor that keeps
    their tokens, stay with their queues: a plugin's go to every worker of its client.
    """

    def __init__(self, task_queue: str = "") -> None:
        """Take the queue of work orders: among a client's workers its own alone serves all workflows."""
        super().__init__("septet", data_converter=_values_as_pydantic, workflows=_default_workflows)
        self._task_queue = task_queue

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Leave the workers of other queues the workflows that they are given."""
        own = config.get("workflows", ())
        configured = super().configure_worker(config)
        if config["task_queue"] != self._task_queue:
            configured["workflows"] = own
        return configured


def _values_as_pydantic(converter: DataConverter | None) -> DataConverter:
    """Let a converter read and write pydantic models, and write failures in short; all else stays."""
    converter = converter or DataConverter.default
    failures = converter.failure_converter_class
    return replace(
        converter,
        payload_converter_class=PydanticPayloadConverter,
        failure_converter_class=FailureConverter if failures is DefaultFailureConverter else failures,
    )


def _default_workflows(workflows: Sequence[type] | None) -> Sequence[type]:
    """Import workflows where they are served or replayed: a client does without."""
    from workflows.board import Board
    from workflows.janitor import Janitor
    from workflows.pipeline import Pipeline
    from workflows.pull_request import PullRequestWorkflow
    from workflows.work_order import WorkOrder

    return workflows or [WorkOrder, PullRequestWorkflow, Board, Janitor, Pipeline]
