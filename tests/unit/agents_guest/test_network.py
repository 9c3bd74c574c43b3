"""The settings and variables of a guest's network."""

import pytest

from septet.agents.guest.network import hosts_in, network_environment, parse_hosts
from septet.errors import InvalidInputError


def test_hosts_are_named_with_their_port() -> None:
    """A host without a port has port 443; an address of IPv6 stands in brackets."""
    hosts = parse_hosts(("packages.example.com", " Files.Example:8443 ", "[2001:db8::1]:80", "[2001:db8::2]", ""))
    expected = "packages.example.com:443 files.example:8443 [2001:db8::1]:80 [2001:db8::2]:443"
    assert " ".join(map(str, hosts)) == expected


@pytest.mark.parametrize("text", ["https://packages.example.com", "*.org:443", ":443", "a:0", "a:x", "-a:1"])
def test_what_names_no_host_is_refused(text: str) -> None:
    """The error names the variable, and its remedy the form of an entry."""
    with pytest.raises(InvalidInputError, match="SEPTET_GUEST_HOSTS") as refused:
        parse_hosts((text,))
    assert "name:port" in refused.value.remedy


def test_addresses_in_settings_name_hosts() -> None:
    """Addresses in a JSON document are found too; without a port the scheme gives it."""
    text = '{"baseURL": "http://127.0.0.1:4000/v1", "other": "https://model.example/v1", "worse": "http://[::1"}'
    assert [str(each) for each in hosts_in([text, "no address"])] == ["127.0.0.1:4000", "model.example:443"]


def test_a_program_inside_is_told_of_no_proxy_but_its_own() -> None:
    """The worker's proxy variables are replaced by the guest's own proxy."""
    env = network_environment({"HTTPS_PROXY": "http://office:3128", "no_proxy": "office", "LANG": "C"})
    assert env["LANG"] == "C"
    assert {value for name, value in env.items() if name.lower() == "https_proxy"} == {"http://127.0.0.1:61128"}
    assert "office" not in str(env)
