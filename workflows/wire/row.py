"""The row of a task: search attributes and the memo `task`, written by its workflow on a change."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import SearchAttributeUpdate

from septet.contracts.board import MEMO, differ_but_in_time, differ_in_memo, row_of
from septet.contracts.task import Task
from workflows.wire.search_attributes import PULL_REQUEST, ROW, attribute_updates, updates_of


class Row:
    """The search attributes and the memo of a task."""

    def __init__(self) -> None:
        """Start with the memo of the workflow's start."""
        self._memo = _read_memo()
        self._attributes: list[SearchAttributeUpdate[Any]] = []

    def write(self, task: Task, more: Sequence[SearchAttributeUpdate[Any]] = ()) -> None:
        """Write the search attributes of the task and `more`, once for a stage, because each write costs.

        The memo is written only if it shows more than the search attributes, and at the end. A new branch or
        address alone waits for the next write.
        """
        attributes = [*attribute_updates(task), *more]
        known = self._attributes or updates_of(workflow.info().typed_search_attributes)
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
        """Remove the search attributes: another workflow has the task's row."""
        workflow.upsert_search_attributes([key.value_unset() for key in ROW])


def _read_memo() -> Task | None:
    try:
        return Task.model_validate(workflow.memo_value(MEMO, None), strict=False)
    except ValidationError:
        return None
