"""The commands in docs/cloud.md, checked against the needs of this release."""

import re
from pathlib import Path

from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError, RPCStatusCode

from workers.server.preflight import attributes_command, namespace_refusal
from workflows.wire.search_attributes import ALL

PAGE = (Path(__file__).parents[3] / "docs" / "cloud.md").read_text(encoding="utf-8")


def test_the_commands_register_each_search_attribute() -> None:
    """Both commands of the page register every search attribute."""
    assert attributes_command(ALL, "agents.a1b2c", "agents.a1b2c.tmprl.cloud:7233") in PAGE
    assert attributes_command(ALL, "agents", "temporal.example.org:7233") in PAGE


def test_the_commands_make_a_namespace() -> None:
    """The page's commands for a namespace equal the commands in the worker's own remedy."""
    refused = RPCError("denied", RPCStatusCode.PERMISSION_DENIED, b"")
    clouds = namespace_refusal(refused, "agents.a1b2c", "agents.a1b2c.tmprl.cloud:7233").remedy
    own = namespace_refusal(refused, "agents", "temporal.example.org:7233").remedy
    commands = [line for line in PAGE.splitlines() if " namespace create " in line]
    assert len(commands) == 2
    assert commands[0].replace("us-east-1", "REGION").removesuffix(" --auth-method api_key") in clouds
    assert commands[1] in own


def test_the_profiles_are_read_by_temporals_own_reader() -> None:
    """Temporal's own reader accepts both profiles, each with an address, a namespace and a key or certificate."""
    texts = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    profiles = [
        ClientConfig.load(config_source=text, config_file_strict=True).profiles["septet"] for text in texts
    ]
    assert [(profile.namespace, bool(profile.api_key), profile.tls is not None) for profile in profiles] == [
        ("agents.a1b2c", True, False),
        ("agents.a1b2c", False, True),
    ]
    assert all(profile.address for profile in profiles)
    assert profiles[1].tls is not None
    assert profiles[1].tls.client_cert is not None
