"""Time-outs and retries, with their reasons."""

from datetime import timedelta
from typing import Final, TypedDict

from temporalio.common import Priority, RetryPolicy
from temporalio.workflow import ActivityCancellationType

from septet.contracts.names import Step
from septet.contracts.order import MOST_SETUP_SECONDS, Timeouts
from septet.contracts.task import Task
from septet.system.text import cut_bytes

HEARTBEAT_TIMEOUT: Final = timedelta(seconds=Timeouts().heartbeat_seconds)
"""The time without a heartbeat after which the server gives up an attempt. Each heartbeat costs, so heartbeats are
as rare as this limit allows. A limit shorter than an outage of the server would discard results that a living
worker still has."""

_STEP_RETRIES: Final = RetryPolicy(
    initial_interval=timedelta(seconds=0.2),
    backoff_coefficient=1.0,
    maximum_interval=timedelta(seconds=1),
    maximum_attempts=0,
)
"""The retries of a step, without a limit: a worker's death costs no try, because the agents are counted on disk,
and an error that only time can end names its own delay."""

_SHORT_RETRIES: Final = RetryPolicy(
    initial_interval=timedelta(seconds=0.5),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=0,
)
"""The retries of other activities, without a limit: a worker's death costs no try here either, and the activity
itself decides after how many tries an error is final."""

_AGENT_STARTS: Final = 3
"""The most agent runs of one activity: a start, a resumed session, and a new start."""
_AROUND_AN_AGENT: Final = timedelta(minutes=15)
"""The time before and after an agent, for evidence, the repository's checks, a snapshot, and a push."""
_LEAST_WAIT_FOR_AN_END: Final = timedelta(hours=1)

_DELIVERED_WITHIN: Final = timedelta(seconds=5)
_SUMMARY_IN_ALL: Final = timedelta(minutes=30)


class ActivityOptions(TypedDict, total=False):
    """The time-outs, the retries and the cancellation with which a workflow starts an activity."""

    schedule_to_start_timeout: timedelta
    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy
    cancellation_type: ActivityCancellationType


_DEFAULT_SCORE: Final = 3
_SCORES_TO_A_KEY: Final = 3
_FAIRNESS_BYTES: Final = 64
"""The server's limit of a fairness key, in bytes."""
_STAGES: Final = (range(1, 2), range(2, 5), range(5, 6), range(6, 8))
"""The numbers of the steps that classify, plan, implement and deliver."""


def priority_of(task: Task, step: Step = Step.CLASSIFY_ISSUE) -> Priority:
    """Return the priority for a host's slots: best score first, then begun work orders, fairly by project.

    The scores from 9 to -3 become the keys 1 to 5; the default score 3 becomes the server's default key 3. In one
    key the server takes turns between fairness keys by their weights. Each stage of a project has its own fairness
    key, with the number of its steps as weight, so that a project gets one whole work order a turn and no more.
    """
    key = 3 - round((task.score - _DEFAULT_SCORE) / _SCORES_TO_A_KEY)
    stage = next(stage for stage in _STAGES if step.number in stage)
    suffix = f"/{stage.start}" if stage.start > 1 else ""
    fair = cut_bytes(task.project, _FAIRNESS_BYTES - len(suffix)) + suffix
    return Priority(priority_key=min(max(key, 1), 5), fairness_key=fair or None, fairness_weight=float(len(stage)))


def step_options(limits: Timeouts) -> ActivityOptions:
    """Return the options of an activity that runs an agent.

    A cancelled work order waits for the activity, which ends the agent, takes a rescue and reports the rescue.

    All tries together have no limit: a usage limit may delay the activity until the next month, and nothing is
    lost meanwhile. The server would also keep the timer of that limit after the step is done.
    """
    return ActivityOptions(
        start_to_close_timeout=_AGENT_STARTS * timedelta(seconds=limits.wall_seconds) + _AROUND_AN_AGENT,
        heartbeat_timeout=timedelta(seconds=limits.heartbeat_seconds),
        retry_policy=_STEP_RETRIES,
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


def summary_options(limits: Timeouts) -> ActivityOptions:
    """Return the options of the request for a summary, with a limit: the next step must not wait hours."""
    return ActivityOptions(**step_options(limits) | {"schedule_to_close_timeout": _SUMMARY_IN_ALL})


def deliver_options() -> ActivityOptions:
    """Return the options of a cancel's delivery: each try may reach another worker of the host.

    If no worker runs the attempt, its own polls and heartbeats find the cancel.
    """
    return ActivityOptions(
        schedule_to_close_timeout=_DELIVERED_WITHIN,
        start_to_close_timeout=_DELIVERED_WITHIN,
        retry_policy=RetryPolicy(initial_interval=timedelta(seconds=0.05), backoff_coefficient=1.5),
    )


def probe_options(probe_seconds: float) -> ActivityOptions:
    """Return the options of a probe of a host: one try, with a short time-out."""
    soon = min(timedelta(seconds=probe_seconds), timedelta(seconds=10))
    return ActivityOptions(
        schedule_to_start_timeout=soon,
        start_to_close_timeout=soon,
        retry_policy=RetryPolicy(maximum_attempts=1),
    )


def end_options(limits: Timeouts, orphan_limit_seconds: float) -> ActivityOptions:
    """Return the options of the activity that ends a cancelled step's agent.

    The wait for a host without a worker lasts longer than an agent can live there: `orphan_limit_seconds`.
    """
    return ActivityOptions(
        schedule_to_close_timeout=max(_LEAST_WAIT_FOR_AN_END, timedelta(seconds=2 * orphan_limit_seconds)),
        start_to_close_timeout=_AROUND_AN_AGENT,
        heartbeat_timeout=timedelta(seconds=limits.heartbeat_seconds),
        retry_policy=_STEP_RETRIES,
    )


OPENING_OPTIONS: Final = ActivityOptions(
    start_to_close_timeout=timedelta(minutes=30) + timedelta(seconds=MOST_SETUP_SECONDS),
    heartbeat_timeout=HEARTBEAT_TIMEOUT,
    retry_policy=_SHORT_RETRIES,
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)
"""The options of opening a workspace, which clones a repository, maybe a large one, and runs the repository's
set-up. The wait for a host has no limit: a fleet may be drained for a night. The entry of a lane waits without
limit too: no other host may have a copy of the lane's work."""

WORKSPACE_OPTIONS: Final = ActivityOptions(**OPENING_OPTIONS | {"schedule_to_close_timeout": timedelta(hours=4)})
"""The options of work with a workspace: the wait for another host has a limit."""

LIST_OPTIONS: Final = ActivityOptions(start_to_close_timeout=timedelta(minutes=2), retry_policy=_SHORT_RETRIES)
"""The options of a request for the server's own list, which may be some seconds late."""
