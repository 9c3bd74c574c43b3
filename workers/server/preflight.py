"""Prepare a Temporal server for work orders: create the namespace, and register its search attributes."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from string import digits
from typing import Any, Final

import structlog
from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from activities.host.payloads import read_json
from septet.contracts.seal import key_id_of
from septet.contracts.workspace import DELIVERS_CANCELS, END_WORK, LIVENESS, PULL_REQUESTS
from septet.errors import SealedError, SeptetError
from workflows.wire.search_attributes import ALL, HOST

RETENTION: Final = timedelta(days=30)
"""How long a namespace that Septet creates keeps closed work orders."""
_CLOUD_HOSTS: Final = (".tmprl.cloud", ".api.temporal.io")
_KNOWN_WITHIN_SECONDS: Final = 60.0
"""The longest wait until all services of the server know a new namespace; ten seconds are usual."""
_SEALED_ROWS: Final = 100
"""The most open workflows with which the keys are tried."""
_TYPES: Final = {
    "Text": IndexedValueType.INDEXED_VALUE_TYPE_TEXT,
    "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "Int": IndexedValueType.INDEXED_VALUE_TYPE_INT,
    "Double": IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
    "Bool": IndexedValueType.INDEXED_VALUE_TYPE_BOOL,
    "Datetime": IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
    "KeywordList": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
}
"""The types of search attributes, by the server's column names without their final number."""

Key = SearchAttributeKey[Any]


class PreflightError(SeptetError):
    """The server lacks what work orders need."""


async def register_namespace(client: Client) -> bool:
    """Create the client's namespace if it is missing, and wait until it is usable; return whether it was created.

    Raises:
        PreflightError: The namespace is missing, and this client has no permission to make it; the remedy is the
            command that makes it.
    """
    try:
        if await _has_namespace(client):
            return False
        await client.workflow_service.register_namespace(
            RegisterNamespaceRequest(
                namespace=client.namespace,
                workflow_execution_retention_period=Duration(seconds=int(RETENTION.total_seconds())),
            )
        )
    except RPCError as error:
        if error.status is not RPCStatusCode.ALREADY_EXISTS:
            raise namespace_refusal(error, client.namespace, _host_of(client)) from error
    try:
        async with asyncio.timeout(_KNOWN_WITHIN_SECONDS):
            while not await _is_usable(client):  # noqa: ASYNC110 -- it is the server's event
                await asyncio.sleep(0.5)
    except TimeoutError:
        message = (
            f"Namespace {client.namespace!r} was created, but could not be used within "
            f"{_KNOWN_WITHIN_SECONDS:.0f} s."
        )
        raise PreflightError(message, remedy="Run `septet worker --register` again.") from None
    return True


async def register_search_attributes(client: Client) -> tuple[str, ...]:
    """Register the missing search attributes, and return their names.

    Raises:
        PreflightError: A search attribute is missing, and this client has no permission to register it; or an
            attribute has another type, or the namespace does not exist.
    """
    known = await _registered(client)
    wrong = [key for key in ALL if key.name in known and known[key.name] != key.indexed_value_type]
    if wrong:
        raise PreflightError(
            f"Namespace {client.namespace!r} has search attributes of another type: {_names_of(wrong)}.",
            remedy=f"Remove them there, then run: {attributes_command(wrong, client.namespace, _host_of(client))}",
        )
    missing = [key for key in ALL if key.name not in known]
    if missing:
        types = {key.name: IndexedValueType.ValueType(int(key.indexed_value_type)) for key in missing}
        request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=types)
        try:
            await client.operator_service.add_search_attributes(request)
        except RPCError as error:
            if error.status is not RPCStatusCode.ALREADY_EXISTS:
                raise attributes_refusal(error, missing, client.namespace, _host_of(client)) from error
    return tuple(key.name for key in missing)


async def check_seal_keys(client: Client, task_queue: str) -> None:
    """Raise if this worker's keys open none of the sealed work of its queue.

    Raises:
        PreflightError: The keys open no work of the queue: each task that the worker took would fail.
        RPCError: The server refused.
    """
    missing: dict[str, str] = {}
    query = f'TaskQueue="{task_queue}" AND ExecutionStatus="Running"'
    async for row in client.list_workflows(query, limit=_SEALED_ROWS):
        for payload in row.raw_info.memo.fields.values():
            if (key := key_id_of(payload.metadata)) is None:
                continue
            try:
                await read_json(client.data_converter, payload)
            except SealedError:
                missing.setdefault(key, row.id)
            else:
                return
    if missing:
        keys = ", ".join(f"{key} ({order_id})" for key, order_id in missing.items())
        raise PreflightError(
            f"This worker's keys open nothing of what is sealed on queue {task_queue!r}, such as: {keys}.",
            remedy="Give it the keys of the other workers in SEPTET_SEAL_KEYS_FILE or SEPTET_SEAL_KEYS_COMMAND. "
            "If they are lost, end that work first: `temporal workflow terminate --workflow-id ID`.",
        )


def namespace_refusal(error: RPCError, namespace: str, host: str) -> PreflightError:
    """Return the error for a missing namespace that this client has no permission to make."""
    command = f"temporal operator namespace create --namespace {namespace} --retention {RETENTION.days}d"
    if _is_cloud(host):
        command = (
            f"tcld namespace create --namespace {namespace.rpartition('.')[0] or namespace} --region REGION "
            f"--retention-days {RETENTION.days}, with --ca-certificate-file FILE or --auth-method api_key"
        )
    return PreflightError(
        f"The server at {host} has no namespace {namespace!r} for this client, and did not allow it to create "
        f"one: {error.message}.",
        remedy=f"Ask an administrator to run: {command}. Or name another namespace in TEMPORAL_NAMESPACE.",
    )


def attributes_refusal(error: RPCError, keys: Iterable[Key], namespace: str, host: str) -> PreflightError:
    """Return the error for missing search attributes that this client has no permission to register."""
    keys = tuple(keys)
    return PreflightError(
        f"Namespace {namespace!r} lacks the search attributes {_names_of(keys)}, "
        f"and this worker may not register them: {error.message}.",
        remedy=f"Ask an administrator to run: {attributes_command(keys, namespace, host)}",
    )


def attributes_command(keys: Iterable[Key], namespace: str, host: str) -> str:
    """Return the command that registers search attributes: `temporal`'s, or `tcld`'s for Temporal Cloud."""
    kinds = [(key.name, key.indexed_value_type.name.capitalize()) for key in keys]
    if _is_cloud(host):
        pairs = " ".join(f"--search-attribute {name}={kind}" for name, kind in kinds)
        return f"tcld namespace search-attributes add --namespace {namespace} {pairs}"
    pairs = " ".join(f"--name {name} --type {kind}" for name, kind in kinds)
    return f"temporal operator search-attribute create --namespace {namespace} {pairs}"


async def _has_namespace(client: Client) -> bool:
    try:
        await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True


async def _is_usable(client: Client) -> bool:
    try:
        await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace)
        )
        await client.count_workflows()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True


async def lacks_attribute(client: Client, key: Key) -> bool:
    """Return whether the namespace lacks a search attribute.

    Raises:
        RPCError: The server refused.
    """
    return key.name not in await _list_attributes(client)


async def _list_attributes(client: Client) -> dict[str, int]:
    """Return the types of the namespace's search attributes, by name.

    The namespace's description names them if the server's database has columns for them. Only if one is missing
    there, this requests the server's list, for which the server opens a connection to itself for half an hour.
    """
    described = await client.workflow_service.describe_namespace(
        DescribeNamespaceRequest(namespace=client.namespace)
    )
    columns = described.config.custom_search_attribute_aliases
    types = {name: _TYPES.get(column.rstrip(digits), 0) for column, name in columns.items()}
    if all(key.name in types for key in ALL):
        return types
    request = ListSearchAttributesRequest(namespace=client.namespace)
    return dict((await client.operator_service.list_search_attributes(request)).custom_attributes)


async def _registered(client: Client) -> dict[str, int]:
    try:
        return await _list_attributes(client)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            remedy = "Create it with `septet worker --register`, or name another one in TEMPORAL_NAMESPACE."
            raise PreflightError(f"The server has no namespace {client.namespace!r}.", remedy=remedy) from error
        if error.status in {RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED}:
            raise attributes_refusal(error, ALL, client.namespace, _host_of(client)) from error
        raise


def _names_of(keys: Iterable[Key]) -> str:
    return ", ".join(key.name for key in keys)


def _host_of(client: Client) -> str:
    return client.service_client.config.target_host


def _is_cloud(host: str) -> bool:
    return host.partition(":")[0].endswith(_CLOUD_HOSTS)


_PROBES: Final = "Work orders ask their hosts themselves whether they are there, with timers in their histories."

_log = structlog.get_logger()


async def host_services(client: Client) -> tuple[str, ...]:
    """Return the services that hosts announce on this server; the services depend on the server's abilities.

    If the server pushes cancels, hosts need not deliver them. If the server lists workers by host, work orders
    need not probe hosts. An ability of the server that cannot be checked counts as missing.
    """
    try:
        request = DescribeNamespaceRequest(namespace=client.namespace)
        capabilities = (await client.workflow_service.describe_namespace(request)).namespace_info.capabilities
        lacks_host = await lacks_attribute(client, HOST)
    except RPCError as error:
        _log.warning("server_not_described", error=error.message, consequence=_PROBES)
        return END_WORK, PULL_REQUESTS, DELIVERS_CANCELS
    services = [END_WORK, PULL_REQUESTS]
    if not capabilities.worker_commands:
        services.append(DELIVERS_CANCELS)
    if not capabilities.worker_heartbeats:
        _log.warning("hosts_are_probed", reason="the server does not list workers", consequence=_PROBES)
    elif lacks_host:
        remedy = "Run `septet worker --register`, then start the workers again."
        _log.warning("hosts_are_probed", reason=f"{HOST.name} is missing", consequence=_PROBES, remedy=remedy)
    else:
        services.append(LIVENESS)
    return tuple(services)
