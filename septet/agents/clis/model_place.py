"""The addresses and keys of a CLI's models, which the engine replaces for a guest."""

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
    """Return requests whose paths begin with a folder, such as `/v1`."""
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
    """A model API with the address and keys that a CLI gets."""

    name: str
    """The name in the CLI's adapter: a variable, or a provider of its settings."""
    address: str
    keys: Mapping[str, str] = field(repr=False)
    """The keys, by variable or by their place in the settings."""
    requests: tuple[str, ...]
    """The permitted requests, as `METHOD /path` below the address; `*` stands for a part of a path."""
    headers: tuple[str, ...] = ()
    """The headers in which this CLI sends keys, in addition to the usual headers of all CLIs."""
    query_names: tuple[str, ...] = QUERY_NAMES
    """The names of parameters that a request may have in its query."""
    fields: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Header fields that look like keys, with their values, from the worker's settings."""

    @property
    def is_kept(self) -> bool:
        """Whether the keys stay out of the sandbox, because the place has a key and an address."""
        return any(self.keys.values()) and bool(_ADDRESS.match(self.address))
