"""The search attributes of work orders: `temporal workflow list --query 'SeptetStage="review"'`."""

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
"""The host of a work order's workspace, by which watchers find the work orders of a silent host."""

TAKEN_UP_AGAIN: Final = SearchAttributeKey.for_bool("SeptetTakenUpAgain")
"""The mark of every run that a reset began: the earlier runs stay in the server's index."""


KEYWORDS: Final = (STATUS, STAGE, PROJECT, REPOSITORY, ISSUE, AGENT, PULL_REQUEST)
ROW: Final = (*KEYWORDS, PRIORITY)
"""The attributes of a task's row."""
ALL: Final = (*ROW, HOST, TAKEN_UP_AGAIN)

_MOST_BYTES: Final = 2000
"""The limit of a value, in bytes; the server's limit is 2 KiB, including the server's own overhead."""


def attribute_updates(task: Task) -> list[SearchAttributeUpdate[Any]]:
    """Return the search attributes of a work order."""
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
    """Return the updates that would write a workflow's present attributes."""
    return [pair.key.value_set(pair.value) for pair in attributes]


def start_attributes(task: Task) -> TypedSearchAttributes:
    """Return the search attributes of a workflow's start."""
    pairs = ((update.key, update.value) for update in attribute_updates(task))
    return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in pairs])


def _cut(value: str) -> str:
    """Cut a value to the server's limit: a longer value fails the start or the workflow task."""
    return cut_bytes(value, _MOST_BYTES)
