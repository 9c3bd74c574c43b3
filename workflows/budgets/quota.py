"""The pause of a login whose usage limit is reached: it lives until the limit begins anew."""

from contextlib import suppress
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from septet.contracts.budget import LONGEST_PAUSE_SECONDS, MEMO, QuotaPause


@workflow.defn(name="Quota")
class Quota:
    """One login's pause; while it runs, no host starts an agent with that login, or asks that forge."""

    @workflow.init
    def __init__(self, pause: QuotaPause) -> None:
        """Begin with the pause that was noted first."""
        self._pause, self._latest = pause, _latest()

    @workflow.run
    async def run(self, pause: QuotaPause) -> None:
        """Wait until the limit begins anew, by the latest word on when that is, and for a month at the most."""
        del pause
        while (left := min(self._pause.until, self._latest) - workflow.now().timestamp()) > 0:
            known = self._pause
            workflow.set_current_details(f"**{known.agent}** is paused: {known.message}")
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: self._pause != known,  # noqa: B023 -- it is asked in this round only
                    timeout=timedelta(seconds=left),
                    timeout_summary="until the usage limit resets",
                )

    @workflow.signal(description="An agent has reached the usage limit of this login.")
    def pause(self, pause: QuotaPause) -> None:
        """Wait longer, where the limit begins anew later."""
        if pause.until > self._pause.until:
            self._pause, self._latest = pause, _latest()
            workflow.upsert_memo({MEMO: pause})


def _latest() -> float:
    """Return when a pause that is told now ends at the latest."""
    return workflow.now().timestamp() + LONGEST_PAUSE_SECONDS
