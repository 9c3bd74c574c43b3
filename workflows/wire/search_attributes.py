"""The row of a work order in the server's lists: its search attributes and its memo."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, SearchAttributeUpdate, TypedSearchAttributes

from septet.contracts.task import Task
from septet.contracts.task_rows import MEMO, differ_but_in_time, differ_in_memo, row_of
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
"""The host of a work order's workspace; other hosts find a silent host's work orders by this attribute."""

TAKEN_UP_AGAIN: Final = SearchAttributeKey.for_bool("SeptetTakenUpAgain")
"""True for each run that a reset began; the earlier runs remain in the server's index."""


KEYWORDS: Final = (STATUS, STAGE, PROJECT, REPOSITORY, ISSUE, AGENT, PULL_REQUEST)
ROW: Final = (*KEYWORDS, PRIORITY)
ALL: Final = (*ROW, HOST, TAKEN_UP_AGAIN)

_MOST_BYTES: Final = 2000
"""The limit of a value in bytes, just below the server's 2 KiB, which include an overhead."""


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


def start_attributes(task: Task) -> TypedSearchAttributes:
    """Return the search attributes with which a workflow starts."""
    pairs = ((update.key, update.value) for update in attribute_updates(task))
    return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in pairs])


def _cut(value: str) -> str:
    """Cut a value to the server's limit, because a longer value would fail the start or the workflow task."""
    return cut_bytes(value, _MOST_BYTES)


class Row:
    """Writes the search attributes and the memo of a work order."""

    def __init__(self) -> None:
        self._memo: Task | None = None
        with suppress(ValidationError):
            self._memo = Task.model_validate(workflow.memo_value(MEMO, None), strict=False)
        self._attributes: list[SearchAttributeUpdate[Any]] = []

    def write(self, task: Task, more: Sequence[SearchAttributeUpdate[Any]] = ()) -> None:
        """Write the task's search attributes and those in `more`, once per stage, because each write costs money.

        The memo is written when the task closes, and at each change of a field that only the memo has. A changed
        branch or pull request waits for another change.
        """
        attributes = [*attribute_updates(task), *more]
        present = workflow.info().typed_search_attributes
        known = self._attributes or [pair.key.value_set(pair.value) for pair in present]
        news = [each for each in attributes if each not in known]
        row = row_of(task)
        is_due = any(each.key != PULL_REQUEST for each in news)
        if is_due:
            workflow.upsert_search_attributes(news)
            self._attributes = attributes
        if (
            self._memo is None
            or differ_in_memo(row, self._memo, with_branch=is_due)
            or row.findings != self._memo.findings
            or (row.is_closed and differ_but_in_time(row, self._memo))
        ):
            workflow.upsert_memo({MEMO: row})
            self._memo = row

    def erase(self) -> None:
        """Remove the search attributes; another workflow now shows the task."""
        workflow.upsert_search_attributes([key.value_unset() for key in ROW])
