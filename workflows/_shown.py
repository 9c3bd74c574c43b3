"""Where people look at a work order: its current details in the web UI, and what it is found by."""

from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeUpdate

from workflows._story import Story
from workflows.search_attributes import values_of


class Shown:
    """What is shown of one work order; only what changed is written."""

    def __init__(self, story: Story) -> None:
        """Begin with nothing shown."""
        self._story = story
        self._found_by: list[SearchAttributeUpdate[Any]] = []

    def tell(self) -> None:
        """Show the story as it is now."""
        workflow.set_current_details(self._story.details())
        found_by = values_of(self._story.task)
        if changed := [value for value in found_by if value not in self._found_by]:
            workflow.upsert_search_attributes(changed)
            self._found_by = found_by
