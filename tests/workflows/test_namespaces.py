"""A server without the namespace gets the namespace, or the error names the command that creates it."""

import asyncio
import uuid

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from workers.connection.plugin import SeptetPlugin
from workers.server.preflight import (
    PreflightError,
    attributes_refusal,
    namespace_refusal,
    register_namespace,
    register_search_attributes,
)
from workflows.wire.search_attributes import ALL, STATUS

pytestmark = pytest.mark.asyncio(loop_scope="session")

CLOUD = "agents.a1b2c.tmprl.cloud:7233"
DENIED = RPCError("Request unauthorized", RPCStatusCode.PERMISSION_DENIED, b"")


async def test_a_namespace_that_is_missing_is_made_and_can_be_used_at_once(client: Client) -> None:
    """The first registration creates the attributes, and work orders can be counted; a second one changes nothing."""
    own = Client(client.service_client, namespace=f"ns-{uuid.uuid4().hex[:8]}", plugins=[SeptetPlugin()])
    async with asyncio.timeout(90):
        with pytest.raises(PreflightError, match=f"no namespace '{own.namespace}'") as missing:
            await register_search_attributes(own)
        assert "septet worker --register" in missing.value.remedy
        assert await register_namespace(own)
        assert set(await register_search_attributes(own)) == {key.name for key in ALL}
        assert (await own.count_workflows()).count == 0
        assert not await register_namespace(own)
        assert await register_search_attributes(own) == ()


async def test_who_may_not_make_a_namespace_is_told_what_to_run() -> None:
    """The remedy is one command with the namespace, for a self-hosted server and for Temporal Cloud."""
    own = namespace_refusal(DENIED, "agents", "temporal:7233")
    assert "Request unauthorized" in own.message
    assert "temporal operator namespace create --namespace agents --retention 30d" in own.remedy
    cloud = namespace_refusal(DENIED, "agents.a1b2c", CLOUD)
    assert "tcld namespace create --namespace agents --region REGION" in cloud.remedy


async def test_who_may_not_register_search_attributes_is_told_what_to_run() -> None:
    """The remedy names each attribute with its type, for the server's own program."""
    own = attributes_refusal(DENIED, [STATUS], "agents", "temporal:7233")
    create = "temporal operator search-attribute create --namespace agents --name SeptetStatus --type Keyword"
    assert create in own.remedy
    cloud = attributes_refusal(DENIED, ALL, "agents.a1b2c", CLOUD)
    add = "tcld namespace search-attributes add --namespace agents.a1b2c --search-attribute SeptetStatus=Keyword"
    assert add in cloud.remedy
    assert "--search-attribute SeptetPriority=Int" in cloud.remedy
