"""The repositories whose forge sends webhooks: they are polled more rarely."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from temporalio.client import Client

from septet.contracts.intake import INTAKE_PREFIX, delivered_at
from septet.errors import InvalidInputError
from septet.git.engine.address import parse_address

_TRUSTED: Final = timedelta(days=1)
"""So long after its last delivery a webhook counts as one that works."""
EVERY_SECONDS: Final = 60.0
_DIGEST: Final = len("-abcdef")


@dataclass(slots=True)
class WebhookNotes:
    """What the API has noted at the intakes, read as rarely as once a minute."""

    client: Client
    _delivered: dict[str, datetime] = field(default_factory=dict)
    """The last delivery, by the key of the repository's address."""
    _read_at: float | None = None

    async def refresh(self) -> None:
        """Read the notes, unless that was done a moment ago.

        Raises:
            RPCError: The server refused.
        """
        now = asyncio.get_running_loop().time()
        if self._read_at is not None and now - self._read_at < EVERY_SECONDS:
            return
        self._read_at, found = now, dict[str, datetime]()
        async for entry in await self.client.list_schedules():
            note = entry.schedule.state.note if entry.schedule is not None else None
            if entry.id.startswith(INTAKE_PREFIX) and (when := delivered_at(note or "")) is not None:
                key = entry.id.removeprefix(INTAKE_PREFIX)[:-_DIGEST]
                found[key] = max(when, found.get(key, when))
        self._delivered = found

    def is_told(self, repository: str) -> bool:
        """Say whether the webhooks of a repository work, as far as is known."""
        try:
            key = parse_address(repository, home=Path.home()).key
        except InvalidInputError:
            return False
        when = self._delivered.get(key)
        return when is not None and datetime.now(UTC) - when < _TRUSTED
