"""Send notifications as signed CloudEvents to the address that the operator configured."""

import asyncio
import base64
import hashlib
import hmac
import time
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_json
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.host.host import Host
from septet.contracts.task import Notification

_WITHIN_SECONDS: Final = 20.0
_SECRET_PREFIX: Final = "whsec_"  # noqa: S105 -- what a secret in base64 begins with


@dataclass(frozen=True, slots=True)
class SendNotification:
    """Sends notifications to the address in this host's settings, signed with the secret in the settings."""

    host: Host

    @activity.defn(name="send_notification")
    async def run(self, notification: Notification) -> None:
        """Post a notification at least once; the receiver recognises a repeat by the notification's id.

        Raises:
            ApplicationError: The receiver did not answer, or refused; Temporal retries after a growing pause.
        """
        settings = self.host.settings
        if settings.notify_url is None or settings.notify_secret is None:
            return
        import httpx  # ten megabytes, which only a worker that notifies needs

        body = to_json(cloud_event(notification, self.host.id))
        headers = {
            "Content-Type": "application/cloudevents+json",
            **signature_headers(settings.notify_secret.get_secret_value(), notification.id, body),
        }
        try:
            async with (
                asyncio.timeout(_WITHIN_SECONDS),
                httpx.AsyncClient(timeout=_WITHIN_SECONDS, follow_redirects=False) as client,
                client.stream(
                    "POST", settings.notify_url.get_secret_value(), content=body, headers=headers
                ) as answer,
            ):
                pass  # the status is enough, and the body may have no end
        except (httpx.HTTPError, TimeoutError) as error:
            message = f"SEPTET_NOTIFY_URL could not be reached: {type(error).__name__}."
            raise ApplicationError(message, type="ReceiverAway") from error
        if not answer.is_success:
            message = f"SEPTET_NOTIFY_URL answered {answer.status_code}."
            raise ApplicationError(message, type="ReceiverRefused")


def cloud_event(notification: Notification, host_id: str) -> dict[str, Any]:
    """Return a notification as a CloudEvent 1.0 in structured JSON."""
    data = notification.model_dump(mode="json", exclude={"id", "time", "task_queue"})
    return {
        "specversion": "1.0",
        "id": notification.id,
        "source": f"urn:septet:host:{host_id}",
        "type": f"septet.work_order.{notification.kind}",
        "subject": notification.work_order_id,
        "time": notification.time,
        "datacontenttype": "application/json",
        "data": data,
    }


def signature_headers(secret: str, event_id: str, body: bytes) -> dict[str, str]:
    """Return the headers that Standard Webhooks specifies: id, time, and the HMAC-SHA256 of both and the body."""
    stamp = str(int(time.time()))
    key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX)) if secret.startswith(_SECRET_PREFIX) else None
    digest = hmac.digest(key or secret.encode(), f"{event_id}.{stamp}.".encode() + body, hashlib.sha256)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
