"""The checks of `septet doctor` on sealed work: the keys in use, and the work that began unsealed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.service import RPCError

from clients.cli.doctor.machine_checks import Check
from clients.executions.seals import SCHEDULE, SealUse, seals_in_use
from septet.contracts.intake import INTAKE_PREFIX
from septet.contracts.seal import key_id_of
from septet.system.text import name_some

_NAMED: Final = 5
_ORDERS: Final = frozenset({"WorkOrder", "Pipeline"})
_ADD_KEY: Final = (
    "Add the key to what SEPTET_SEAL_KEYS_FILE or SEPTET_SEAL_KEYS_COMMAND names. If it is lost, end these with "
    "`temporal workflow terminate --workflow-id ID` and `temporal schedule delete --schedule-id ID`; "
    "`septet doctor --json` lists all of them."
)
_CLOSE_WORKFLOWS: Final = (
    "Run the workers without SEPTET_SEAL_REQUIRED until these workflows have closed, and set it again then."
)
_SEAL_INTAKES: Final = "To have intakes sealed, start a worker once without SEPTET_SEAL_REQUIRED."
_SEAL_JANITORS: Final = (
    "To have a janitor's schedule sealed, start a worker on its host; if the host is gone, run "
    "`temporal schedule delete --schedule-id ID`."
)


@dataclass(frozen=True, slots=True)
class SealCheck(Check):
    """A check of seals; people see some of the ids, and programs see all ids."""

    uses: tuple[Mapping[str, object], ...] = ()
    """The open workflows and schedules of the message, with the fields of `SealUse` for programs."""


async def seal_checks(client: Client, *, required: bool) -> list[Check]:
    """Check the seals of all open work; return no check if this process has no keys.

    Args:
        client: The client.
        required: Whether workers refuse unsealed input.
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
    """Report the keys, other than the current key, that open workflows and schedules need."""
    missing = _users(uses, lambda use: use.missing_keys)
    older = _users(uses, lambda use: use.keys - use.missing_keys - {key})
    others = _rows([use for use in uses if use.keys - {key} or use.missing_keys])
    message = f"{key} seals."
    if older:
        message += f" Keep these keys, with which open work began: {older}."
    if missing:
        message += f" These keys are missing here: {missing}."
        return SealCheck("seal keys", "warning", message, _ADD_KEY, others)
    if not older:
        message += f" All open work began with {key}."
    return SealCheck("seal keys", "ok", message, uses=others)


def unsealed_check(uses: Sequence[SealUse]) -> Check:
    """Report unsealed work that workers refuse: workflows make no progress, and schedules start nothing."""
    unsealed = [use for use in uses if use.began_unsealed]
    if not unsealed:
        return Check("sealing", "ok", "Workers refuse unsealed input, and nothing that is open began unsealed.")
    workflows = [use for use in unsealed if use.kind != SCHEDULE]
    schedules = [use for use in unsealed if use.kind == SCHEDULE]
    intakes = [use for use in schedules if use.id.startswith(INTAKE_PREFIX)]
    message, remedies = "Workers refuse unsealed input.", list[str]()
    if workflows:
        stand = "stands" if len(workflows) == 1 else "stand"
        message += f" {_count(workflows, 'workflow')} began unsealed and {stand} still: {_names(workflows)}."
        remedies.append(_CLOSE_WORKFLOWS)
    if schedules:
        message += f" The input of {_count(schedules, 'schedule')} is not sealed: {_names(schedules)}."
    if intakes:
        remedies.append(_SEAL_INTAKES)
    if len(intakes) < len(schedules):
        remedies.append(_SEAL_JANITORS)
    return SealCheck("sealing", "warning", message, " ".join(remedies), _rows(unsealed))


def _users(uses: Sequence[SealUse], keys_of: Callable[[SealUse], frozenset[str]]) -> str:
    """Return a text with the keys that `keys_of` selects, each with some of its work; empty without keys."""
    keys = sorted(frozenset[str]().union(*map(keys_of, uses)))
    return "; ".join(f"{key} ({_names([use for use in uses if key in keys_of(use)])})" for key in keys)


def _count(uses: Sequence[SealUse], noun: str) -> str:
    return f"{len(uses)} {noun}{'s' * (len(uses) != 1)}"


def _names(uses: Sequence[SealUse]) -> str:
    """Return a text with some of the ids, those of work orders and pipelines first."""
    return name_some([use.id for use in sorted(uses, key=lambda use: (use.kind not in _ORDERS, use.id))], _NAMED)


def _rows(uses: Sequence[SealUse]) -> tuple[Mapping[str, object], ...]:
    """Return all uses as rows for programs, sorted by id."""
    return tuple(
        {**asdict(use), "keys": sorted(use.keys), "missing_keys": sorted(use.missing_keys)}
        for use in sorted(uses, key=lambda use: use.id)
    )
