"""The paths to which forges send their events. They take no token: the signature is the proof."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import structlog
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from clients.http.parameters import Connected
from clients.http.problems import problem
from septet.errors import NotFoundError
from septet.forges.choose import WEBHOOK_KINDS
from septet.forges.events.webhooks import Delivery
from septet.telemetry.metrics import DELIVERIES
from septet.telemetry.recorder import RECORDER

PREFIX: Final = "/webhooks"
WEBHOOK_LIMIT_BYTES: Final = 2 * 1024 * 1024
"""The most that one delivery may hold."""
router: Final = APIRouter(prefix=PREFIX, include_in_schema=False)
_log = structlog.get_logger()


@router.post("/{forge}")
async def receive(forge: str, request: Request, operations: Connected) -> JSONResponse:
    """Take a delivery, and start what it asks for without waiting for the end."""
    secrets: Mapping[str, str] = request.app.state.webhook_secrets
    kind = WEBHOOK_KINDS.get(forge)
    if kind is None or forge not in secrets:
        name = _variable(forge) if kind is not None else ", ".join(WEBHOOK_KINDS)
        remedy = f"Set {name} where the API is served." if kind is not None else f"There are: {name}."
        raise NotFoundError(f"No webhooks are taken at {PREFIX}/{forge[:100]}.", remedy=remedy)
    delivery = Delivery({name.lower(): value for name, value in request.headers.items()}, await request.body())
    if not kind.is_signed(delivery, secrets[forge]):
        _log.warning("webhook_refused", forge=forge)
        RECORDER.record(DELIVERIES, forge=forge, outcome="unsigned")
        detail = "The signature is missing or wrong."
        remedy = f"Set the same secret at the forge and, where the API is served, in {_variable(forge)}."
        return problem(HTTPStatus.UNAUTHORIZED, "Unauthorized", detail, remedy)
    reply = await operations.deliveries.take(kind.read_event(delivery), delivery.digest)
    _log.info("webhook_taken", forge=forge, accepted=reply.accepted, why=reply.why, workflows=reply.workflows)
    RECORDER.record(DELIVERIES, forge=forge, outcome="accepted" if reply.accepted else "ignored")
    status = HTTPStatus.ACCEPTED if reply.accepted else HTTPStatus.OK
    return JSONResponse(reply.model_dump(mode="json"), status)


def _variable(forge: str) -> str:
    return f"SEPTET_{forge.upper()}_WEBHOOK_SECRET"


def is_webhook(path: str) -> bool:
    """Say whether a path takes deliveries."""
    return path.startswith(f"{PREFIX}/")
