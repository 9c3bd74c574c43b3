"""The seat that a triaged work order waits for, and gives back when it closes."""

from collections.abc import Callable

from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task


class Seat:
    """One work order's place among those that run at a time."""

    async def taken(
        self,
        order: WorkOrderInput,  # noqa: ARG002 -- what a board decides by; every seat is free as yet
        task: Task,  # noqa: ARG002 -- as above
        wanted: Callable[[], bool],
    ) -> bool:
        """Wait for a seat for as long as it is `wanted`; return whether it was taken."""
        return wanted()

    def give(self) -> None:
        """Take the board's word that the seat is this work order's."""

    async def left(self) -> None:
        """Give back what was asked for or taken: the work order begins without a seat, or closes."""
