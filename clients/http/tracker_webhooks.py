"""The paths to which trackers send their events. They take no token: the signature is the proof."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import structlog
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from clients.http.parameters import Connected
from clients.http.problems import problem
from clients.http.webhooks import PREFIX
from septet.errors import NotFoundError
from septet.forges.events.webhooks import Delivery
from septet.trackers.linear.webhook import is_signed, read_event

router: Final = APIRouter(prefix=PREFIX, include_in_schema=False)
_log = structlog.get_logger()


@router.post("/linear")
async def receive(request: Request, operations: Connected) -> JSONResponse:
    """Take a delivery, and start what it asks for without waiting for the end."""
    secrets: Mapping[str, str] = request.app.state.webhook_secrets
    if "linear" not in secrets:
        remedy = "Set SEPTET_LINEAR_WEBHOOK_SECRET where the API is served."
        raise NotFoundError(f"No webhooks are taken at {PREFIX}/linear.", remedy=remedy)
    delivery = Delivery({name.lower(): value for name, value in request.headers.items()}, await request.body())
    if not is_signed(delivery, secrets["linear"]):
        _log.warning("webhook_refused", tracker="linear")
        detail = "The signature is missing or wrong, or the delivery is more than a minute old."
        remedy = "Give the API the signing secret of the webhook, and see that its machine's clock is right."
        return problem(HTTPStatus.UNAUTHORIZED, "Unauthorized", detail, remedy)
    reply = await operations.tracker_deliveries.take(read_event(delivery))
    _log.info("webhook_taken", tracker="linear", accepted=reply.accepted, why=reply.why, workflows=reply.workflows)
    return JSONResponse(reply.model_dump(mode="json"), HTTPStatus.ACCEPTED if reply.accepted else HTTPStatus.OK)
