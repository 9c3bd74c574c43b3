"""The model APIs of a CLI, whose addresses and keys Septet replaces for guests; and the names of models."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_ADDRESS: Final = re.compile(r"https?://[^/\s]", re.IGNORECASE)
QUERY_NAMES: Final = (
    "after_id", "alt", "api-version", "before_id", "beta", "client_version", "limit", "pageSize", "pageToken",
)  # fmt: skip
MESSAGES: Final = ("POST /messages", "POST /messages/count_tokens")
RESPONSES: Final = ("POST /responses", "GET /responses", "POST /responses/compact")
"""The requests of the Responses API; `GET` upgrades to a web socket."""
CHAT: Final = ("POST /chat/completions",)
MODELS: Final = ("GET /models", "GET /models/*")
_OF_GEMINI: Final = tuple(f":{verb}" for verb in ("generateContent", "streamGenerateContent", "countTokens"))
_OF_VERTEX: Final = (*_OF_GEMINI, ":rawPredict", ":streamRawPredict")
GENERATE: Final = tuple(f"POST /models/*{verb}" for verb in _OF_GEMINI)
VERTEX: Final = tuple(
    f"POST {place}publishers/*/models/*{verb}"
    for place in ("/", "/projects/*/locations/*/")
    for verb in _OF_VERTEX
)
BEDROCK: Final = tuple(
    f"POST /model/*/{verb}"
    for verb in ("converse", "converse-stream", "invoke", "invoke-with-response-stream", "count-tokens")
)


def below(folder: str, *requests: str) -> tuple[str, ...]:
    """Return `requests` with `folder`, such as `/v1`, in front of each path."""
    return tuple(each.replace(" /", f" {folder}/", 1) for each in requests)


AZURE: Final = (*below("/deployments/*", *CHAT, *RESPONSES), *below("/v1", *CHAT, *RESPONSES), *CHAT, *RESPONSES)
"""The requests below an address that ends with `/openai`."""
ANY: Final = (
    *MESSAGES, *RESPONSES, *CHAT, *MODELS, *GENERATE, *VERTEX, *BEDROCK, *AZURE, *below("/v1", *MESSAGES, *MODELS),
    *below("/v1", *VERTEX), *below("/v1beta1", *VERTEX), *below("/openai", *AZURE),
)  # fmt: skip
"""The requests for a provider whose protocol is unknown here, because the worker's settings choose the
provider."""


@dataclass(frozen=True, slots=True)
class ModelPlace:
    """A model API of a CLI: its address, its keys, and the requests that may reach it."""

    name: str
    """The name by which the CLI's adapter knows this API: a variable, or a provider in the settings."""
    address: str
    keys: Mapping[str, str] = field(repr=False)
    """The keys, by variable or by their place in the settings."""
    requests: tuple[str, ...]
    """The permitted requests, as `METHOD /path` below the address; `*` stands for a part of a path."""
    headers: tuple[str, ...] = ()
    """The headers in which this CLI sends keys, in addition to the usual headers of all CLIs."""
    query_names: tuple[str, ...] = QUERY_NAMES
    fields: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Header fields that look like keys, with their values, from the worker's settings."""

    @property
    def is_kept(self) -> bool:
        """Whether the keys stay outside the sandbox: only if a key is set and the address is a web address."""
        return any(self.keys.values()) and bool(_ADDRESS.match(self.address))


_REGION_AND_MAKER: Final = re.compile(r"^(?:[a-z]{2,6}\.)?[a-z]+\.(?=[a-z])")
"""The prefix of a model's name on Bedrock: `eu.anthropic.`."""
_EDITION: Final = re.compile(r"(?:-(?:latest|preview|exp|default|v\d+|\d{3,8}|\d{4}-\d\d-\d\d|\d\d-\d{2,4}))+$")
"""The suffix of a model's name: a date, a revision, or its release state."""
_SIZES: Final = frozenset({"fable", "opus", "sonnet", "haiku", "pro", "flash", "lite"})
"""The words by which CLIs name the newest model of a kind."""


def names_another_model(asked_model: str, told_model: str) -> bool:
    """Return whether `told_model`, named in a stream, is certainly not the requested `asked_model`.

    A request for `auto` leaves the choice to the CLI. A request without a number, such as `opus`, may mean any
    model, except a model whose name has a different word for the size, such as `haiku`.
    """
    wanted, named = _plain(asked_model), _plain(told_model)
    if wanted.startswith("auto"):
        return False
    if any(character.isdigit() for character in wanted):
        return _EDITION.sub("", wanted) != _EDITION.sub("", named)
    words = _SIZES.intersection(wanted.split("-"))
    others = _SIZES.intersection(named.split("-")) - words
    return bool(words and others and not words.issubset(named.split("-")))


def _plain(name: str) -> str:
    """Return a model's name without provider, context length and revision, with `-` between the words."""
    last = name.lower().rpartition("/")[2].partition("[")[0].partition("@")[0].partition(":")[0]
    return re.sub(r"[._]", "-", _REGION_AND_MAKER.sub("", last))
