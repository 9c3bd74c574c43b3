"""What `septet doctor` says of sealed work: which keys are in use, and what began before there were keys."""

from collections.abc import Sequence
from typing import Final

from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.service import RPCError

from clients.cli.machine_checks import Check
from clients.temporal.seals import SCHEDULE, SealUse, seals_in_use
from septet.contracts.seal import key_id_of
from septet.system.text import name_some

_NAMED: Final = 5
_ORDERS: Final = frozenset({"WorkOrder", "Pipeline"})


async def seal_checks(client: Client, *, required: bool) -> list[Check]:
    """Look at how everything open is sealed; nothing where this process has no keys.

    Args:
        client: Where.
        required: Workers refuse unsealed input.
    """
    codec = client.data_converter.payload_codec
    if codec is None:
        return []
    try:
        uses = await seals_in_use(client)
    except RPCError as error:
        remedy = "Run `septet doctor` again when the server answers."
        return [Check("sealing", "warning", f"The server does not list its workflows: {error.message}.", remedy)]
    (payload,) = await codec.encode([Payload()])
    return [keys_check(uses, key_id_of(payload.metadata) or ""), *([unsealed_check(uses)] if required else [])]


def keys_check(uses: Sequence[SealUse], key: str) -> Check:
    """Say which keys open workflows and schedules need besides the one that seals now."""
    missing = sorted({each for use in uses for each in use.missing_keys})
    older = sorted({each for use in uses for each in use.keys - use.missing_keys} - {key})
    message = f"{key} seals."
    if older:
        needed = "; ".join(f"{each} ({_names([use for use in uses if each in use.keys])})" for each in older)
        message += f" Keep these keys, with which open work began: {needed}."
    if not missing:
        nothing = f" All open work began with {key}." if not older else ""
        return Check("seal keys", "ok", message + nothing)
    closed = "; ".join(f"{each} ({_names([use for use in uses if each in use.missing_keys])})" for each in missing)
    remedy = (
        "Add the key to what SEPTET_SEAL_KEYS_FILE or SEPTET_SEAL_KEYS_COMMAND names. If it is lost, end these "
        "with `temporal workflow terminate` and `temporal schedule delete`."
    )
    return Check("seal keys", "warning", f"{message} These keys are missing here: {closed}.", remedy)


def unsealed_check(uses: Sequence[SealUse]) -> Check:
    """Count what began unsealed where workers refuse that: it stands still."""
    unsealed = [use for use in uses if use.began_unsealed]
    if not unsealed:
        return Check("sealing", "ok", "Workers refuse unsealed input, and nothing that is open began unsealed.")
    orders = [use for use in unsealed if use.kind in _ORDERS]
    schedules = [use for use in unsealed if use.kind == SCHEDULE]
    named = f" ({_names(orders)})" if orders else ""
    message = (
        f"{len(orders)} open work orders and pipelines{named} and {len(unsealed) - len(orders) - len(schedules)} "
        "other workflows began unsealed, and stand still, because workers refuse unsealed input."
    )
    if schedules:
        message += f" They also refuse what {len(schedules)} schedules start: {_names(schedules)}."
    remedy = "Run the workers without SEPTET_SEAL_REQUIRED until they have closed, and set it again then."
    return Check("sealing", "warning", message, remedy)


def _names(uses: Sequence[SealUse]) -> str:
    return name_some(sorted(use.id for use in uses), _NAMED)
