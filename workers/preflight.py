"""What a Temporal server must know before the first work order: our search attributes."""

from collections.abc import Iterable

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from septet.errors import SeptetError
from workflows.search_attributes import ALL


class PreflightError(SeptetError):
    """The server lacks what work orders need."""


async def register_search_attributes(client: Client) -> tuple[str, ...]:
    """Register those of our search attributes that the namespace lacks, and return their names.

    Raises:
        PreflightError: They are missing and this client may not register them, or one has another type.
    """
    known = await _registered(client)
    wrong = [key.name for key in ALL if key.name in known and known[key.name] != key.indexed_value_type]
    if wrong:
        raise PreflightError(
            f"Namespace {client.namespace!r} has search attributes of another type: {', '.join(wrong)}.",
            remedy=f"Remove them there, then run: {_by_hand(client, (k for k in ALL if k.name in wrong))}",
        )
    missing = tuple(key for key in ALL if key.name not in known)
    if missing:
        await _add(client, missing)
    return tuple(key.name for key in missing)


async def _registered(client: Client) -> dict[str, int]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    answer = await client.operator_service.list_search_attributes(request)
    return dict(answer.custom_attributes)


async def _add(client: Client, keys: tuple[SearchAttributeKey, ...]) -> None:  # type: ignore[type-arg]
    request = AddSearchAttributesRequest(
        namespace=client.namespace,
        search_attributes={key.name: IndexedValueType.ValueType(int(key.indexed_value_type)) for key in keys},
    )
    try:
        await client.operator_service.add_search_attributes(request)
    except RPCError as error:
        if error.status is RPCStatusCode.ALREADY_EXISTS:
            return
        raise PreflightError(
            f"Namespace {client.namespace!r} lacks the search attributes {', '.join(key.name for key in keys)}, "
            f"and this worker may not register them: {error.message}.",
            remedy=f"Have someone who may run: {_by_hand(client, keys)}",
        ) from error


def _by_hand(client: Client, keys: Iterable[SearchAttributeKey]) -> str:  # type: ignore[type-arg]
    pairs = " ".join(f"--name {key.name} --type {key.indexed_value_type.name.capitalize()}" for key in keys)
    return f"temporal operator search-attribute create --namespace {client.namespace} {pairs}"
