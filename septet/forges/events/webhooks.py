"""A delivery of a forge's webhook: proven by its signature before a byte of it is read."""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from septet.contracts.forge_events import EVENT_TEXT_LIMIT, ForgeEvent
from septet.errors import InvalidInputError

_ID_CHARACTERS: Final = 32
F = TypeVar("F", bound="ForeignEvent")


@dataclass(frozen=True, slots=True)
class Delivery:
    """A request as it came in; nothing of it is true before its signature was checked."""

    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes = field(repr=False)

    def header(self, name: str) -> str:
        """Return a header; empty where there is none."""
        return self.headers.get(name, "")

    @property
    def digest(self) -> str:
        """What the delivery is known by: its body, which is signed, while the id in its headers is not."""
        return hashlib.sha256(self.body).hexdigest()[:_ID_CHARACTERS]


Reader = Callable[[Delivery], ForgeEvent | None]
"""Reads one kind of event; `None` where that is nothing to act on."""


@dataclass(frozen=True, slots=True)
class WebhookKind:
    """How one kind of forge sends its events."""

    is_signed: Callable[[Delivery, str], bool]
    """Says whether a delivery was made by somebody who knows the secret, in constant time."""
    event_header: str
    """Which header names the kind of an event, in lower case."""
    readers: Mapping[str, Reader]
    """By the kind of event."""

    def read_event(self, delivery: Delivery) -> ForgeEvent | None:
        """Return what a delivery tells; `None` where that is nothing to act on.

        Raises:
            InvalidInputError: It cannot be read.
        """
        reader = self.readers.get(delivery.header(self.event_header))
        return reader(delivery) if reader is not None else None


class ForeignEvent(BaseModel):
    """What a forge sends, as far as it is used."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def is_hmac_sha256(body: bytes, secret: str, signature: str) -> bool:
    """Return whether a signature, in hexadecimal digits, is that of a body; in constant time."""
    expected = hmac.digest(secret.encode(), body, hashlib.sha256).hex()
    return hmac.compare_digest(expected.encode(), signature.strip().lower().encode())


def read_payload(form: type[F], delivery: Delivery) -> F:
    """Return the body of a delivery that was proven.

    Raises:
        InvalidInputError: It is no such event.
    """
    try:
        return form.model_validate_json(delivery.body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        message = f"The delivery cannot be read: {where}: {first['msg']}."
        raise InvalidInputError(message, remedy="Set the webhook to send JSON (`application/json`).") from error


def bounded_text(text: str | None) -> str:
    """Return as much of what somebody wrote as an event carries."""
    return (text or "")[:EVENT_TEXT_LIMIT]
