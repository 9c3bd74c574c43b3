"""The row of a task as its workflow keeps it: search attributes and the memo `task`, written as they change."""

from typing import Any, Final

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import SearchAttributeUpdate

from septet.contracts.row import MEMO, differ, row_of
from septet.contracts.task import Task
from workflows.search_attributes import ALL, attribute_updates

_PATCH: Final = "row-in-memo"


class Row:
    """What a task is found and shown by."""

    def __init__(self) -> None:
        """Begin with what the one who started the workflow wrote."""
        self._memo = _read_memo()
        self._attributes: list[SearchAttributeUpdate[Any]] = []

    def write(self, task: Task) -> None:
        """Write what has changed."""
        attributes = attribute_updates(task)
        if news := [each for each in attributes if each not in self._attributes]:
            workflow.upsert_search_attributes(news)
            self._attributes = attributes
        row = row_of(task)
        if not workflow.patched(_PATCH):
            return
        if self._memo is None or differ(row, self._memo):
            workflow.upsert_memo({MEMO: row})
            self._memo = row

    def erase(self) -> None:
        """Be found no more: another workflow has the task's row."""
        workflow.upsert_search_attributes([key.value_unset() for key in ALL])


def _read_memo() -> Task | None:
    try:
        return Task.model_validate(workflow.memo_value(MEMO, None), strict=False)
    except ValidationError:
        return None
