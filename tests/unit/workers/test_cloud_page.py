"""What docs/cloud.md tells an administrator to type is what this release needs."""

import re
from pathlib import Path

from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError, RPCStatusCode

from workers.preflight import attributes_command, namespace_refusal
from workflows.search_attributes import ALL

PAGE = (Path(__file__).parents[3] / "docs" / "cloud.md").read_text(encoding="utf-8")


def test_the_commands_register_each_search_attribute() -> None:
    """A search attribute that a release adds is in both commands."""
    assert attributes_command(ALL, "agents.a1b2c", "agents.a1b2c.tmprl.cloud:7233") in PAGE
    assert attributes_command(ALL, "agents", "temporal.example.org:7233") in PAGE


def test_the_commands_make_a_namespace() -> None:
    """They are those that `septet worker --register` names where it may not make one."""
    refused = RPCError("denied", RPCStatusCode.PERMISSION_DENIED, b"")
    clouds = namespace_refusal(refused, "agents.a1b2c", "agents.a1b2c.tmprl.cloud:7233").remedy
    own = namespace_refusal(refused, "agents", "temporal.example.org:7233").remedy
    commands = [line for line in PAGE.splitlines() if " namespace create " in line]
    assert len(commands) == 2
    assert commands[0].replace("us-east-1", "REGION").removesuffix(" --auth-method api_key") in clouds
    assert commands[1] in own


def test_an_address_comes_first_then_the_namespace_then_its_search_attributes() -> None:
    """Typed from top to bottom, `septet worker --register` goes to that server, and not to one on this machine."""
    texts = ("[profile.", "\nexport TEMPORAL_PROFILE=", "\ntcld namespace create ", "\nseptet worker --register\n")
    places = [PAGE.index(text) for text in texts]
    assert places == sorted(places)


def test_the_profiles_are_read_by_temporals_own_reader() -> None:
    """Each profile has an address and a namespace, and a key of either kind, under names that the SDK knows."""
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
