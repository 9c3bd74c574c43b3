"""The row of a task as its workflow keeps it: search attributes and the memo `task`, written as they change."""

from collections.abc import Sequence
from typing import Any, Final

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import SearchAttributeUpdate

from septet.contracts.row import MEMO, differ, differ_but_in_time, differ_in_memo, row_of
from septet.contracts.task import Task
from workflows._patches import has_patch
from workflows.search_attributes import PULL_REQUEST, ROW, attribute_updates, updates_of

_PATCH: Final = "row-in-memo"
_ONCE: Final = "row-once-a-stage"
"""Before it, the memo told also what the search attributes tell, and both were written with each change."""
_FINDINGS: Final = "row-tells-findings"
"""Before it, the memo was not written because of what looks like a key."""
_AT_THE_END: Final = "row-tells-the-end"
"""Before it, the memo was not written at the end where it had the branch already."""


class Row:
    """What a task is found and shown by."""

    def __init__(self) -> None:
        """Begin with what the one who started the workflow wrote."""
        self._memo = _read_memo()
        self._attributes: list[SearchAttributeUpdate[Any]] = []

    def write(self, task: Task, more: Sequence[SearchAttributeUpdate[Any]] = ()) -> None:
        """Write what has changed of the task and of `more`: once for a stage, for each write costs."""
        attributes = [*attribute_updates(task), *more]
        if has_patch(_ONCE):
            self._write_once(task, attributes)
        else:
            self._write_each(task, attributes)

    def erase(self) -> None:
        """Be found no more: another workflow has the task's row."""
        workflow.upsert_search_attributes([key.value_unset() for key in ROW])

    def _write_once(self, task: Task, attributes: list[SearchAttributeUpdate[Any]]) -> None:
        """Write what the task is found by; the memo only where it tells more, and at the end.

        A branch and an address can wait.
        """
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
            or (row.findings != self._memo.findings and workflow.patched(_FINDINGS))
            or (row.is_closed and differ_but_in_time(row, self._memo) and workflow.patched(_AT_THE_END))
        ):
            workflow.upsert_memo({MEMO: row})
            self._memo = row

    def _write_each(self, task: Task, attributes: list[SearchAttributeUpdate[Any]]) -> None:
        if news := [each for each in attributes if each not in self._attributes]:
            workflow.upsert_search_attributes(news)
            self._attributes = attributes
        row = row_of(task)
        if not has_patch(_PATCH):
            return
        if self._memo is None or differ(row, self._memo):
            workflow.upsert_memo({MEMO: row})
            self._memo = row


def _read_memo() -> Task | None:
    try:
        return Task.model_validate(workflow.memo_value(MEMO, None), strict=False)
    except ValidationError:
        return None
