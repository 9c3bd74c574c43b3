"""A client of httpx that sends a read again which was refused for a moment."""

from typing import Any

import httpx

from septet.forges.patience import AskAgainError


class PatientClient(httpx.Client):
    """Its hooks wait, and raise `AskAgainError`."""

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:  # noqa: ANN401 -- httpx's own
        """Send a request until no hook asks for it again; they bound how often."""
        while True:
            try:
                return super().send(request, **options)
            except AskAgainError:
                continue
