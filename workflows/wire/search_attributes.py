"""What work orders can be found by: `temporal workflow list --query 'SeptetStage="review"'`."""

from typing import Any, Final

from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    SearchAttributeUpdate,
    TypedSearchAttributes,
)

from septet.contracts.task import Task
from septet.system.text import cut_bytes

STATUS: Final = SearchAttributeKey.for_keyword("SeptetStatus")
STAGE: Final = SearchAttributeKey.for_keyword("SeptetStage")
PROJECT: Final = SearchAttributeKey.for_keyword("SeptetProject")
REPOSITORY: Final = SearchAttributeKey.for_keyword("SeptetRepository")
ISSUE: Final = SearchAttributeKey.for_keyword("SeptetIssue")
PRIORITY: Final = SearchAttributeKey.for_int("SeptetPriority")
AGENT: Final = SearchAttributeKey.for_keyword("SeptetAgent")
PULL_REQUEST: Final = SearchAttributeKey.for_keyword("SeptetPullRequest")
HOST: Final = SearchAttributeKey.for_keyword("SeptetHost")
"""Where the workspace of a work order is; by it others tell it that its host is silent."""

TAKEN_UP_AGAIN: Final = SearchAttributeKey.for_bool("SeptetTakenUpAgain")
"""Of every run that a reset took up again: the runs before it stay in the server's index."""


KEYWORDS: Final = (STATUS, STAGE, PROJECT, REPOSITORY, ISSUE, AGENT, PULL_REQUEST)
ROW: Final = (*KEYWORDS, PRIORITY)
"""What a task's row consists of."""
ALL: Final = (*ROW, HOST, TAKEN_UP_AGAIN)

_MOST_BYTES: Final = 2000
"""Of a value; the server's limit is 2 KiB, its own signs included."""


def attribute_updates(task: Task) -> list[SearchAttributeUpdate[Any]]:
    """Return what a work order is found by now."""
    return [
        STATUS.value_set(task.status.value),
        STAGE.value_set(task.stage.value),
        PROJECT.value_set(_cut(task.project)),
        REPOSITORY.value_set(_cut(task.repository_url)),
        ISSUE.value_set(task.issue_number),
        PRIORITY.value_set(task.priority),
        AGENT.value_set(task.assigned_agent or ""),
        PULL_REQUEST.value_set(_cut(task.pr_url or "")),
    ]


def updates_of(attributes: TypedSearchAttributes) -> list[SearchAttributeUpdate[Any]]:
    """Return the updates that would write what a workflow has already."""
    return [pair.key.value_set(pair.value) for pair in attributes]


def start_attributes(task: Task) -> TypedSearchAttributes:
    """Return what a workflow is found by as soon as it is started."""
    pairs = ((update.key, update.value) for update in attribute_updates(task))
    return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in pairs])


def _cut(value: str) -> str:
    """Return as much of a value as the server takes: for more it refuses the start, or fails the workflow task."""
    return cut_bytes(value, _MOST_BYTES)
