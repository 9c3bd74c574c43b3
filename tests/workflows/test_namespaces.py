"""A server without the namespace gets the namespace, or the error names the command that creates it."""

import pytest
from temporalio.service import RPCError, RPCStatusCode

from workers.server.preflight import (
    attributes_refusal,
    namespace_refusal,
)
from workflows.wire.search_attributes import ALL, STATUS

pytestmark = pytest.mark.asyncio(loop_scope="session")

CLOUD = "agents.a1b2c.tmprl.cloud:7233"
DENIED = RPCError("Request unauthorized", RPCStatusCode.PERMISSION_DENIED, b"")


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
