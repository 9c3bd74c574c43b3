"""The costs of a project's work orders: workers report them, and estimates use them."""

from typing import Final

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from septet.contracts.amounts import Spending
    from septet.contracts.costs import CostHistory, CostNotes
    from septet.costs.cost_book import CostBook

_MESSAGES: Final = 500
"""The messages after which the workflow continues as new: a query on a new worker replays all messages."""


@workflow.defn(name="Costs")
class Costs:
    """The cost history of one project. The workflow never ends, so the server's retention never removes it."""

    @workflow.init
    def __init__(self, history: CostHistory) -> None:
        """Restore the previous run's history."""
        self._book = CostBook(history)
        self._messages = 0

    @workflow.run
    async def run(self, history: CostHistory) -> None:
        """Record notes until the number of messages calls for a new run."""
        del history
        await workflow.wait_condition(
            lambda: self._messages >= _MESSAGES or workflow.info().is_continue_as_new_suggested()
        )
        workflow.continue_as_new(self._book.history)

    @workflow.signal(description="What turns of this project's work orders have used.")
    def note(self, notes: CostNotes) -> None:
        """Record the notes; a repeated note counts nothing."""
        self._book.add(notes.notes)
        self._messages += 1
        self._show()

    @workflow.query(description="All that is known of what this project's work orders have cost.")
    def costs(self) -> CostHistory:
        """Return the history."""
        return self._book.history

    def _show(self) -> None:
        history, total = self._book.history, Spending()
        for row in history.rows:
            total = total.plus(row.use)
        minutes = total.seconds / 60
        workflow.set_current_details(
            f"**{history.project}**: {total.usd:.2f} USD, {total.tokens:,} tokens, {minutes:.0f} minutes, "
            f"{total.turns} agent runs. {len(history.completed)} completed work orders are kept one by one."
        )
