"""What is recorded of requests to forges, by the host that is asked: hooks for a client of httpx."""

import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from septet.telemetry.metrics import FORGE_REQUESTS, FORGE_SECONDS
from septet.telemetry.recorder import RECORDER

if TYPE_CHECKING:
    import httpx

_BEGAN_AT: Final = "septet_began_at"


def note_request(request: "httpx.Request") -> None:
    """Note when a request begins, by the monotonic clock."""
    request.extensions[_BEGAN_AT] = time.monotonic()


def note_answer(response: "httpx.Response") -> None:
    """Record that a forge answered, by the class of its status, and how long that took."""
    request = response.request
    RECORDER.record(FORGE_REQUESTS, host=request.url.host, outcome=f"{response.status_code // 100}xx")
    if (began_at := request.extensions.get(_BEGAN_AT)) is not None:
        RECORDER.record(FORGE_SECONDS, time.monotonic() - began_at, host=request.url.host)


def note_unreached(url: str) -> None:
    """Record that a forge did not answer."""
    RECORDER.record(FORGE_REQUESTS, host=urlsplit(url).hostname, outcome="unreached")
