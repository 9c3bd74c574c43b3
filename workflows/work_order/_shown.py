"""Where people look at a work order: its current details in the web UI, and its row on the board."""

from temporalio import workflow

from workflows._row import Row
from workflows.work_order.state import WorkOrderState


class Shown:
    """What is shown of one work order."""

    def __init__(self, story: WorkOrderState) -> None:
        """Begin with nothing shown."""
        self._story = story
        self._row = Row()

    def tell(self) -> None:
        """Show the story as it is now."""
        workflow.set_current_details(self._story.details())
        self._row.write(self._story.task)
