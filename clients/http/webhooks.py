"""The paths to which forges and trackers send webhooks. A webhook needs no token, but a valid signature."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import structlog
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from clients.http.bodies import Connected
from clients.http.problems import problem
from septet.contracts.intake import WebhookReply
from septet.errors import NotFoundError
from septet.forges.events.webhooks import Delivery
from septet.forges.kinds import WEBHOOK_KINDS
from septet.telemetry.metrics import DELIVERIES
from septet.telemetry.recorder import RECORDER
from septet.trackers.linear.webhook import is_signed, read_event

PREFIX: Final = "/webhooks"
WEBHOOK_LIMIT_BYTES: Final = 2 * 1024 * 1024
"""The most bytes of the body of one webhook."""
router: Final = APIRouter(prefix=PREFIX, include_in_schema=False)
_log = structlog.get_logger()


@router.post("/linear")
async def receive_from_linear(request: Request, operations: Connected) -> JSONResponse:
    """Take a delivery of Linear, and start its work without waiting for the end."""
    secrets: Mapping[str, str] = request.app.state.webhook_secrets
    if "linear" not in secrets:
        raise _no_webhooks("linear", "Set SEPTET_LINEAR_WEBHOOK_SECRET where the API is served.")
    delivery = await _delivery_of(request)
    if not is_signed(delivery, secrets["linear"]):
        _log.warning("webhook_refused", tracker="linear")
        detail = "The signature is missing or wrong, or the delivery is more than a minute old."
        remedy = "Give the API the signing secret of the webhook, and see that its machine's clock is right."
        return problem(HTTPStatus.UNAUTHORIZED, "Unauthorized", detail, remedy)
    reply = await operations.deliveries.take_session(read_event(delivery))
    return _answer(reply, tracker="linear")


@router.post("/{forge}")
async def receive(forge: str, request: Request, operations: Connected) -> JSONResponse:
    """Take a delivery of a forge, and start its work without waiting for the end."""
    secrets: Mapping[str, str] = request.app.state.webhook_secrets
    kind, variable = WEBHOOK_KINDS.get(forge), f"SEPTET_{forge.upper()}_WEBHOOK_SECRET"
    if kind is None:
        raise _no_webhooks(forge, f"There are: {', '.join(WEBHOOK_KINDS)}.")
    if forge not in secrets:
        raise _no_webhooks(forge, f"Set {variable} where the API is served.")
    delivery = await _delivery_of(request)
    if not kind.is_signed(delivery, secrets[forge]):
        _log.warning("webhook_refused", forge=forge)
        RECORDER.record(DELIVERIES, forge=forge, outcome="unsigned")
        detail = "The signature is missing or wrong."
        remedy = f"Set the same secret at the forge and, where the API is served, in {variable}."
        return problem(HTTPStatus.UNAUTHORIZED, "Unauthorized", detail, remedy)
    reply = await operations.deliveries.take(kind.read_event(delivery), delivery.digest)
    RECORDER.record(DELIVERIES, forge=forge, outcome="accepted" if reply.accepted else "ignored")
    return _answer(reply, forge=forge)


async def _delivery_of(request: Request) -> Delivery:
    return Delivery({name.lower(): value for name, value in request.headers.items()}, await request.body())


def _no_webhooks(sender: str, remedy: str) -> NotFoundError:
    return NotFoundError(f"No webhooks are taken at {PREFIX}/{sender[:100]}.", remedy=remedy)


def _answer(reply: WebhookReply, **sender: str) -> JSONResponse:
    _log.info("webhook_taken", **sender, accepted=reply.accepted, why=reply.why, workflows=reply.workflows)
    return JSONResponse(reply.model_dump(mode="json"), HTTPStatus.ACCEPTED if reply.accepted else HTTPStatus.OK)


def is_webhook(path: str) -> bool:
    """Return whether forges and trackers send webhooks to this path."""
    return path.startswith(f"{PREFIX}/")
