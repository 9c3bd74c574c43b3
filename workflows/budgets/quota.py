"""The pause of a login whose usage limit is reached: the workflow runs until the limit resets."""

from contextlib import suppress
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from septet.contracts.budget import LONGEST_PAUSE_SECONDS, MEMO, QuotaPause


@workflow.defn(name="Quota")
class Quota:
    """The pause of one login: meanwhile no host starts an agent, or calls a forge, with that login."""

    @workflow.init
    def __init__(self, pause: QuotaPause) -> None:
        """Start with the first reported pause."""
        self._pause, self._latest = pause, _latest()

    @workflow.run
    async def run(self, pause: QuotaPause) -> None:
        """Wait until the latest reported time of the limit's reset, at most a month after that report."""
        del pause
        while (left := min(self._pause.until, self._latest) - workflow.now().timestamp()) > 0:
            known = self._pause
            workflow.set_current_details(f"**{known.agent}** is paused: {known.message}")
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: self._pause != known,  # noqa: B023 -- the condition is checked in this round only
                    timeout=timedelta(seconds=left),
                    timeout_summary="until the usage limit resets",
                )

    @workflow.signal(description="An agent has reached the usage limit of this login.")
    def pause(self, pause: QuotaPause) -> None:
        """Wait longer if the limit resets later than known."""
        if pause.until > self._pause.until:
            self._pause, self._latest = pause, _latest()
            workflow.upsert_memo({MEMO: pause})


def _latest() -> float:
    """Return the latest end of a pause that is reported now."""
    return workflow.now().timestamp() + LONGEST_PAUSE_SECONDS
