"""A forge that refuses reads for a moment: who asks waits, and asks again, instead of beginning its work again."""

import time
from dataclasses import dataclass
from typing import Final

from septet.errors import ForgeUnavailableError
from septet.forges.pauses import PAUSES

WAITING_SECONDS: Final = 30.0
"""For all that is asked at once; who would have to wait longer is told for how long."""
_LEAST_SECONDS: Final = 1.0
"""Also where the forge names less: it has just refused."""


class AskAgainError(ForgeUnavailableError):
    """The forge refused a read for a moment, which is over."""


@dataclass(slots=True)
class ForgePatience:
    """What one who asks has left of it."""

    left: float = WAITING_SECONDS
    refusals: int = 0
    """For so many of them in a row the forge named no time."""

    def wait(self, seconds: float) -> bool:
        """Wait for so many seconds; `False`, at once, where they are more than what is left."""
        seconds = max(seconds, _LEAST_SECONDS)
        if seconds > self.left:
            return False
        self.left -= seconds
        time.sleep(seconds)
        return True

    def wait_unnamed(self, seconds: float) -> bool:
        """Wait where the forge names no time: for `seconds`, and twice as long each time; as `wait`."""
        waited = self.wait(seconds * 2**self.refusals)
        self.refusals += waited
        return waited

    def await_turn(self, api_url: str, token: str | None, what: str) -> None:
        """Wait until a forge may be asked that wants to be left alone.

        Raises:
            ForgeUnavailableError: That takes longer; the error says how long.
        """
        while True:
            try:
                PAUSES.check(api_url, token, what)
            except ForgeUnavailableError as error:
                if not self.wait(error.retry_after_seconds or 0.0):
                    raise
            else:
                return
