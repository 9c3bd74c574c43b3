"""The time-outs and retries of activities."""

from datetime import timedelta
from typing import Final, TypedDict

from temporalio.common import Priority, RetryPolicy
from temporalio.workflow import ActivityCancellationType

from septet.contracts.names import Step
from septet.contracts.order import MOST_SETUP_SECONDS, Timeouts
from septet.contracts.task import Task
from septet.system.text import cut_bytes

HEARTBEAT_TIMEOUT: Final = timedelta(seconds=Timeouts().heartbeat_seconds)
"""The time without a heartbeat after which the server gives up an attempt. Each heartbeat costs money, so the time
is long. A time shorter than an outage of the server would lose results of living workers."""

_STEP_RETRIES: Final = RetryPolicy(
    initial_interval=timedelta(seconds=0.2),
    backoff_coefficient=1.0,
    maximum_interval=timedelta(seconds=1),
    maximum_attempts=0,
)
"""The retries of a step, without a limit. A worker's death costs no try: agents are counted on disk. An error that
only time can end names its own delay."""

_SHORT_RETRIES: Final = RetryPolicy(
    initial_interval=timedelta(seconds=0.5),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=0,
)
"""The retries of all other activities, without a limit; the activity itself decides when an error is final."""

_AGENT_STARTS: Final = 3
"""How often one activity may start an agent: a start, a resumed session, and a new start."""
_AROUND_AN_AGENT: Final = timedelta(minutes=15)
"""The time before and after an agent, for evidence, the repository's checks, a snapshot, and a push."""
_LEAST_WAIT_FOR_AN_END: Final = timedelta(hours=1)

_DELIVERED_WITHIN: Final = timedelta(seconds=5)
_SUMMARY_IN_ALL: Final = timedelta(minutes=30)


class ActivityOptions(TypedDict, total=False):
    """The time-outs, retries and kind of cancellation of an activity."""

    schedule_to_start_timeout: timedelta
    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy
    cancellation_type: ActivityCancellationType


_DEFAULT_SCORE: Final = 3
_SCORES_TO_A_KEY: Final = 3
_FAIRNESS_BYTES: Final = 64
"""The server's limit for a fairness key, in bytes."""
_STAGES: Final = (range(1, 2), range(2, 5), range(5, 6), range(6, 8))
"""The numbers of the steps in each part of the work: to classify, plan, implement and deliver."""


def priority_of(task: Task, step: Step = Step.CLASSIFY_ISSUE) -> Priority:
    """Return a step's priority for a host's slots: best score first, and fairly between projects.

    The scores from 9 to -3 become the server's priority keys 1 to 5; the default score 3 becomes key 3. Within a
    priority key, the server takes turns between fairness keys, one for each part of a project's work (`_STAGES`).
    A fairness key's weight is the part's number of steps, so that all projects complete equally many work orders.
    """
    key = 3 - round((task.score - _DEFAULT_SCORE) / _SCORES_TO_A_KEY)
    stage = next(stage for stage in _STAGES if step.number in stage)
    suffix = f"/{stage.start}" if stage.start > 1 else ""
    fair = cut_bytes(task.project, _FAIRNESS_BYTES - len(suffix)) + suffix
    return Priority(priority_key=min(max(key, 1), 5), fairness_key=fair or None, fairness_weight=float(len(stage)))


def step_options(limits: Timeouts) -> ActivityOptions:
    """Return the options of an activity that runs an agent.

    A cancelled work order waits for the activity, which ends the agent and takes a rescue.

    There is no limit for all tries together, because a usage limit may delay the activity for weeks. The server
    would also keep a timer for such a limit after the step.
    """
    return ActivityOptions(
        start_to_close_timeout=_AGENT_STARTS * timedelta(seconds=limits.wall_seconds) + _AROUND_AN_AGENT,
        heartbeat_timeout=timedelta(seconds=limits.heartbeat_seconds),
        retry_policy=_STEP_RETRIES,
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


def summary_options(limits: Timeouts) -> ActivityOptions:
    """Return the options of the activity that requests a summary: the time is short, because a step waits."""
    return ActivityOptions(**step_options(limits) | {"schedule_to_close_timeout": _SUMMARY_IN_ALL})


def deliver_options() -> ActivityOptions:
    """Return the options for the delivery of a cancel, in which each try may reach another worker of the host.

    If the delivery fails, the attempt itself learns of the cancel by a poll or a heartbeat.
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

    The wait for a silent host is longer than an agent can live there without a worker (`orphan_limit_seconds`).
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
"""The options of opening a workspace, which clones a repository and runs its set-up. There is no limit on the wait
for a host, because all hosts may be drained for a night. The wait for a lane's host has no limit either: no other
host may have the lane's work."""

WORKSPACE_OPTIONS: Final = ActivityOptions(**OPENING_OPTIONS | {"schedule_to_close_timeout": timedelta(hours=4)})
"""The options of other activities on a workspace, in which the wait for a host has a limit."""

LIST_OPTIONS: Final = ActivityOptions(start_to_close_timeout=timedelta(minutes=2), retry_policy=_SHORT_RETRIES)
"""The options of a request for the server's lists, which can lag by seconds."""
