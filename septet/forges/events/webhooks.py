"""A delivery of a forge's webhook: its signature is checked before its body is parsed."""

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
    """A received request; its content is untrusted before its signature was checked."""

    headers: Mapping[str, str]
    """The headers by their names in lower case."""
    body: bytes = field(repr=False)

    def header(self, name: str) -> str:
        """Return a header; empty if there is none."""
        return self.headers.get(name, "")

    @property
    def digest(self) -> str:
        """The delivery's identity: a hash of the body, which is signed; the id in the headers is not signed."""
        return hashlib.sha256(self.body).hexdigest()[:_ID_CHARACTERS]


Reader = Callable[[Delivery], ForgeEvent | None]
"""Reads one kind of event; returns `None` if the event needs no action."""


@dataclass(frozen=True, slots=True)
class WebhookKind:
    """The form in which one kind of forge sends its events."""

    is_signed: Callable[[Delivery, str], bool]
    """Returns whether the sender of a delivery knows the secret, in constant time."""
    event_header: str
    """The header with the kind of the event, in lower case."""
    readers: Mapping[str, Reader]
    """The readers by the kind of event."""

    def read_event(self, delivery: Delivery) -> ForgeEvent | None:
        """Return the event of a delivery; `None` if the event needs no action.

        Raises:
            InvalidInputError: The delivery cannot be read.
        """
        reader = self.readers.get(delivery.header(self.event_header))
        return reader(delivery) if reader is not None else None


class ForeignEvent(BaseModel):
    """The fields of a forge's event that Septet uses."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def is_hmac_sha256(body: bytes, secret: str, signature: str) -> bool:
    """Return whether a hexadecimal signature matches a body, in constant time."""
    expected = hmac.digest(secret.encode(), body, hashlib.sha256).hex()
    return hmac.compare_digest(expected.encode(), signature.strip().lower().encode())


def read_payload(form: type[F], delivery: Delivery) -> F:
    """Return the body of a delivery whose signature was checked, as a value of type `form`.

    Raises:
        InvalidInputError: The body is not an event of this form.
    """
    try:
        return form.model_validate_json(delivery.body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        message = f"The delivery cannot be read: {where}: {first['msg']}."
        raise InvalidInputError(message, remedy="Set the webhook to send JSON (`application/json`).") from error


def bounded_text(text: str | None) -> str:
    """Return a text cut to the limit of an event."""
    return (text or "")[:EVENT_TEXT_LIMIT]
