"""The network hosts of a CLI's model API: the usual hosts, and the hosts that the worker's settings name."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit

from septet.agents.clis.adapter import Adapter, Invocation, Machine, own_variables
from septet.agents.clis.models import ModelPlace
from septet.agents.clis.own_files import locate
from septet.agents.guest.network import FIRST_MODEL_PORT, ModelKey, NamedHost, hosts_in, worthless_key


def model_hosts(adapter: Adapter, host: Machine, invocation: Invocation) -> tuple[NamedHost, ...]:
    """Return the network hosts to which a CLI connects for its model and its login."""
    return tuple(NamedHost(name, 443) for name in adapter.asked_hosts(invocation, host))


def named_model_hosts(adapter: Adapter, host: Machine, invocation: Invocation) -> tuple[NamedHost, ...]:
    """Return the network hosts in the addresses that this CLI's own variables and settings name."""
    named = adapter.named_addresses(invocation, host)
    if named is not None:
        return hosts_in(named)
    texts = list(own_variables(invocation.env).values())
    for file in adapter.capabilities.settings:
        with suppress(OSError):  # most files are missing
            content = locate(adapter, host, file.name).read_bytes()
            texts.append((file.reduce(content) or b"").decode(errors="replace"))
    return hosts_in(texts)


def model_keys(adapter: Adapter, host: Machine, invocation: Invocation) -> tuple[ModelKey, ...]:
    """Return those model APIs of a CLI whose keys stay outside the sandbox."""
    return tuple(key for _, key in _kept_outside(adapter, host, invocation))


def without_keys(adapter: Adapter, host: Machine, invocation: Invocation) -> Invocation:
    """Return the invocation with dummy keys and local addresses for the APIs whose keys stay outside."""
    places = []
    for place, key in _kept_outside(adapter, host, invocation):
        keys = {
            name: worthless_key(number) if real else "" for number, (name, real) in enumerate(place.keys.items())
        }
        places.append(replace(place, address=key.address_inside, keys=keys))
    return adapter.move_models(invocation, places) if places else invocation


def name_models(text: str, keys: Iterable[ModelKey]) -> str:
    """Return a CLI's text with the models' real addresses in place of the local addresses that guests use."""
    for key in keys:
        address = urlsplit(key.address)
        host = address.netloc.rpartition("@")[2]
        inside = key.address_inside
        text = text.replace(inside, f"{address.scheme}://{host}").replace(inside.removeprefix("http://"), host)
    return text


def _kept_outside(adapter: Adapter, host: Machine, invocation: Invocation) -> list[tuple[ModelPlace, ModelKey]]:
    """Return each model API whose keys stay outside, in the adapter's form and in the proxy's form."""
    found: list[tuple[ModelPlace, ModelKey]] = []
    for place in adapter.model_places(invocation, host):
        if place.is_kept:
            port, keys = FIRST_MODEL_PORT + len(found), tuple(place.keys.values())
            further = (place.headers, place.requests, place.query_names, place.fields)
            found.append((place, ModelKey(port, place.address, keys, *further)))
    return found
