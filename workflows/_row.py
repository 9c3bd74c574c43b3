"""The row of a task as its workflow keeps it: search attributes and the memo `task`, written as they change."""

from typing import Any, Final

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import SearchAttributeUpdate

from septet.contracts.row import MEMO, differ, row_of
from septet.contracts.task import Task
from workflows.search_attributes import ALL, values_of

_PATCH: Final = "row-in-memo"


class Row:
    """What a task is found and shown by."""

    def __init__(self) -> None:
        """Begin with what the one who started the workflow wrote."""
        self._shown = _started_with()
        self._found_by: list[SearchAttributeUpdate[Any]] = []

    def write(self, task: Task) -> None:
        """Write what has changed."""
        found_by = values_of(task)
        if changed := [value for value in found_by if value not in self._found_by]:
            workflow.upsert_search_attributes(changed)
            self._found_by = found_by
        row = row_of(task)
        if not workflow.patched(_PATCH):
            return
        if self._shown is None or differ(row, self._shown):
            workflow.upsert_memo({MEMO: row})
            self._shown = row

    def erase(self) -> None:
        """Be found no more: another workflow has the task's row."""
        workflow.upsert_search_attributes([key.value_unset() for key in ALL])


def _started_with() -> Task | None:
    try:
        return Task.model_validate(workflow.memo_value(MEMO, None), strict=False)
    except ValidationError:
        return None
