"""Share the spent limits of forges among all hosts, by the workflow that pauses logins."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import structlog

from activities.host.accounts import Accounts
from septet.contracts.budget import QuotaPause
from septet.errors import SeptetError
from septet.forges.http.pauses import PAUSES

_ANSWER_WITHIN_SECONDS: Final = 2.0
"""The longest wait for the server's answer, which takes a millisecond or two; after that, the request to the forge
is sent anyway."""
_LEFT_ALONE_SECONDS: Final = 30.0
"""The seconds for which a server that did not answer gets no request, so that not each request to a forge
waits."""
_DIGEST_LENGTH: Final = 24

_log: Final = structlog.get_logger()

T = TypeVar("T")


@asynccontextmanager
async def sharing_forge_pauses(accounts: Accounts) -> AsyncIterator[None]:
    """Share this process's pauses with all hosts, and heed the pauses of other hosts, while the block runs."""
    PAUSES.fleet = SharedForgePauses(accounts, asyncio.get_running_loop())
    try:
        yield
    finally:
        PAUSES.fleet = None


@dataclass(slots=True)
class SharedForgePauses:
    """Shares pauses as workflows of type `Quota`, and reads pauses from their descriptions, which is no Action.

    Threads that send requests to forges call these methods; the worker's event loop sends the requests to the
    server.
    """

    accounts: Accounts
    loop: asyncio.AbstractEventLoop
    _loop_thread: int = field(default_factory=threading.get_ident)
    _asks_again_at: float = 0.0
    """The time of the next request to the server, by the monotonic clock."""

    def until(self, budget: str) -> float:
        """Return the time until which no request may be sent; as `FleetPauses.until`."""
        pause = self._answer(self.accounts.find_pause(_login(budget)))
        return pause.until if pause is not None else 0.0

    def note(self, budget: str, host: str, until: float) -> None:
        """Share a pause with the other hosts; as `FleetPauses.note`."""
        pause = QuotaPause(agent=host, until=until, message="It takes no more requests from this key until then.")
        self._answer(self.accounts.note_pause(_login(budget), pause))

    def _answer(self, call: Coroutine[Any, Any, T]) -> T | None:
        """Return the server's answer; `None` without an answer: each host then finds a spent limit by itself."""
        if threading.get_ident() == self._loop_thread or time.monotonic() < self._asks_again_at:
            call.close()
            return None
        try:
            answer = asyncio.run_coroutine_threadsafe(call, self.loop)
        except RuntimeError:  # the worker has just ended
            call.close()
            return None
        try:
            return answer.result(_ANSWER_WITHIN_SECONDS)
        except (SeptetError, TimeoutError, CancelledError) as error:
            answer.cancel()
            self._asks_again_at = time.monotonic() + _LEFT_ALONE_SECONDS
            _log.warning("forge_pauses_not_shared", error=str(error) or type(error).__name__)
            return None


def _login(budget: str) -> str:
    """Return the name of a forge's limit among the logins that can be paused."""
    return f"forge-{budget[:_DIGEST_LENGTH]}"
