"""The `opencode` CLI, tested with 1.18.33."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from septet.agents.clis.adapter import Adapter, Invocation, Machine, Turn, option, own_variables
from septet.agents.clis.capabilities import Capabilities
from septet.agents.clis.login_files import LoginFile, TokenFields
from septet.agents.clis.models import ANY, CHAT, GENERATE, MESSAGES, MODELS, RESPONSES, ModelPlace, below
from septet.agents.clis.opencode.stream import OpenCodeStream, OpenCodeTranscript
from septet.agents.clis.own_files import read_own_file
from septet.agents.clis.plain_settings import SettingsFile, read_object
from septet.contracts.order import Tools
from septet.errors import AgentError

_LOGIN: Final = (
    "OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "AZURE_*", "GEMINI_API_KEY", "GOOGLE_*", "OPENROUTER_API_KEY",
    "MISTRAL_API_KEY", "GROQ_API_KEY", "DEEPSEEK_API_KEY", "XAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION",
)  # fmt: skip
_QUIET: Final[Mapping[str, str]] = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}
"""Septet's variables. No setting limits the CLI's retries, and the stream does not report them: the idle limit
ends them."""
_CONFIG: Final = "OPENCODE_CONFIG_CONTENT"
_SETTINGS_FILE: Final = "~/.config/opencode/opencode.json"
_LOGIN_FILE: Final = "~/.local/share/opencode/auth.json"
_PROVIDERS: Final[Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]]] = {
    "anthropic": ("https://api.anthropic.com/v1", ("ANTHROPIC_API_KEY",), MESSAGES),
    "openai": ("https://api.openai.com/v1", ("OPENAI_API_KEY",), (*RESPONSES, *CHAT)),
    "google": (
        "https://generativelanguage.googleapis.com/v1beta",
        ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"),
        GENERATE,
    ),
    "openrouter": ("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",), (*CHAT, *RESPONSES)),
    "mistral": ("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), CHAT),
    "groq": ("https://api.groq.com/openai/v1", ("GROQ_API_KEY",), CHAT),
    "deepseek": ("https://api.deepseek.com", ("DEEPSEEK_API_KEY",), (*CHAT, *below("/v1", *CHAT))),
    "xai": ("https://api.x.ai/v1", ("XAI_API_KEY",), (*CHAT, *RESPONSES)),
    "opencode": (
        "https://opencode.ai/zen/v1",
        ("OPENCODE_API_KEY",),
        (*CHAT, *RESPONSES, *MESSAGES, *MODELS, *GENERATE),
    ),
}
"""The address, the variables of the keys, and the requests of each provider, by opencode's name of the
provider."""
_LOGIN_HOSTS: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic": ("console.anthropic.com",),
    "openai": ("auth.openai.com", "chatgpt.com"),
}
"""Further hosts to which opencode connects if its login file has a login, by provider."""


def _host_of(provider: str) -> str:
    return _PROVIDERS[provider][0].split("/")[2]


_VARIABLE: Final = re.compile(r"\{env:([A-Za-z0-9_]+)\}")
_OWN_KEY: Final = "apiKey"
_KEPT_SETTINGS: Final = (
    "$schema", "model", "small_model", "provider", "enabled_providers", "disabled_providers",
)  # fmt: skip
_CAPABILITIES: Final = Capabilities(
    tested_version="1.18.33",
    memory_mib=600,
    without_tools=True,
    keeps_model=True,
    login_files=(_LOGIN_FILE, _SETTINGS_FILE),
    login_variables=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", _CONFIG),
    model_hosts=(*map(_host_of, _PROVIDERS), *chain(*_LOGIN_HOSTS.values())),
    home=("XDG_DATA_HOME", "~/.local/share"),
    logins=(
        LoginFile(
            _LOGIN_FILE, tokens=TokenFields("*", "access", "refresh", "expires", owner=("type", "accountId"))
        ),
    ),
    settings=(SettingsFile(_SETTINGS_FILE, kept=_KEPT_SETTINGS),),
    session_database="opencode.db",
)
_PERMISSION: Final[Mapping[Tools, Mapping[str, str]]] = {
    "all": {},
    "read": {"*": "deny", "read": "allow", "grep": "allow", "glob": "allow", "list": "allow"},
    "none": {"*": "deny"},
}


class OpenCode(Adapter):
    """The adapter of the opencode CLI."""

    def arguments(self, turn: Turn, host: Machine) -> list[str]:
        """Return the arguments of the program for `turn`."""
        del host
        arguments = ["run", "--format", "json", *(("--auto",) if turn.tools == "all" else ())]
        return [*arguments, *option("--session", turn.resume_id), *option("--model", turn.model)]

    def environment(self, turn: Turn, host: Machine) -> dict[str, str]:
        """Return the environment; one variable has opencode's configuration, with the permissions of the turn.

        Raises:
            AgentError: The configuration in the worker's environment is not a JSON object.
        """
        env = super().environment(turn, host)
        return {**env, _CONFIG: _configuration(env.get(_CONFIG, ""), turn.tools)}

    def provider_of(self, host: Machine, model: str | None) -> str:
        """Return the provider that the name of `model` contains; for `None`, use the model of the settings."""
        given = read_object(host.env.get(_CONFIG, "").encode()) or {}
        in_file = read_object(read_own_file(self, host, _SETTINGS_FILE)) or {}
        asked = model or given.get("model") or in_file.get("model")
        return asked.partition("/")[0] if isinstance(asked, str) and "/" in asked else ""

    def keys_of(self, host: Machine, provider: str) -> dict[str, str]:
        """Return the keys for a provider, by variable; empty if the login file has a login for the provider."""
        places = {place.name: place for place in self.model_places(Invocation((), host.env, b""), host)}
        if provider in places:
            return {name: key for name, key in places[provider].keys.items() if key}
        return {} if provider in _PROVIDERS else super().keys_of(host, provider)

    def model_places(self, invocation: Invocation, host: Machine) -> tuple[ModelPlace, ...]:
        """Return the APIs of all known and configured providers, except those with a login in the login file.

        Keys come from environment variables, and never from the user's settings. For a provider that no
        model of the turn uses, no requests are permitted.
        """
        chosen = self._asked_providers(invocation, host)
        given = _providers(invocation.env.get(_CONFIG, "").encode())
        in_file = _providers(read_own_file(self, host, _SETTINGS_FILE))
        logins = read_object(read_own_file(self, host, _LOGIN_FILE)) or {}
        places = []
        for name in dict.fromkeys((*given, *in_file, *_PROVIDERS)):
            if name in logins:
                continue
            address, variables, requests = _PROVIDERS.get(name, ("", (), ANY))
            options = {**_options(in_file, name), **_options(given, name)}
            referred = _VARIABLE.fullmatch(str(options.get(_OWN_KEY, "")))
            names = (*variables, *((referred[1],) if referred else ()))
            keys = {each: invocation.env.get(each, "") for each in names}
            if not referred and isinstance(key := _options(given, name).get(_OWN_KEY), str):
                keys[_OWN_KEY] = key
            place = ModelPlace(
                name,
                str(options.get("baseURL", address)),
                keys,
                (requests if "baseURL" not in options else ANY) if chosen is None or name in chosen else (),
            )
            headers = options.get("headers")
            fields = headers.items() if isinstance(headers, dict) else ()
            places.append(replace(place, fields=tuple((str(field), str(value)) for field, value in fields)))
        return tuple(places)

    def asked_hosts(self, invocation: Invocation, host: Machine) -> Collection[str]:
        """Return the network hosts of the selected providers, except those whose keys stay outside the sandbox."""
        chosen = self._asked_providers(invocation, host)
        kept = {place.name for place in self.model_places(invocation, host) if place.is_kept}
        asked = [name for name in _PROVIDERS if name not in kept and (chosen is None or name in chosen)]
        return (*map(_host_of, asked), *chain(*(_LOGIN_HOSTS.get(name, ()) for name in asked)))

    def named_addresses(self, invocation: Invocation, host: Machine) -> list[str]:
        """Return texts with the addresses that settings and variables name for the selected providers."""
        variables = own_variables({name: text for name, text in invocation.env.items() if name != _CONFIG})
        chosen = self._asked_providers(invocation, host)
        given = _providers(invocation.env.get(_CONFIG, "").encode())
        providers = {**_providers(read_own_file(self, host, _SETTINGS_FILE)), **given}
        asked = [provider for name, provider in providers.items() if chosen is None or name in chosen]
        return [*variables.values(), *map(json.dumps, asked)]

    def _asked_providers(self, invocation: Invocation, host: Machine) -> frozenset[str] | None:
        """Return the providers of the models that command line and settings select; `None` if they select none."""
        argv, given = invocation.argv, read_object(invocation.env.get(_CONFIG, "").encode()) or {}
        in_file = read_object(read_own_file(self, host, _SETTINGS_FILE)) or {}
        on_line = argv[argv.index("--model") + 1] if "--model" in argv[:-1] else None
        main = on_line or given.get("model") or in_file.get("model")
        if not isinstance(main, str) or "/" not in main:
            return None
        roles = (each for kind in ("agent", "mode") for each in _objects(given.get(kind)).values())
        others = (*(each.get("small_model") for each in (given, in_file)), *(role.get("model") for role in roles))
        return frozenset(str(model).partition("/")[0] for model in (main, *others) if model)

    def move_models(self, invocation: Invocation, places: Sequence[ModelPlace]) -> Invocation:
        """Return the invocation with the addresses and keys of `places` in opencode's configuration."""
        env = dict(invocation.env)
        configuration = json.loads(env.get(_CONFIG) or "{}")
        for place in places:
            options = {"baseURL": place.address}
            if own_key := place.keys.get(_OWN_KEY):
                options[_OWN_KEY] = own_key
            providers = configuration.setdefault("provider", {})
            provider = providers.setdefault(place.name, {})
            provider["options"] = {**(provider.get("options") or {}), **options}
            env |= {name: key for name, key in place.keys.items() if env.get(name)}
        return replace(invocation, env={**env, _CONFIG: json.dumps(configuration)})


def _providers(configuration: bytes) -> dict[str, Any]:
    """Return the providers in a configuration, by name; skip values that are no objects."""
    return _objects((read_object(configuration) or {}).get("provider"))


def _objects(value: object) -> dict[str, dict[str, Any]]:
    found = value.items() if isinstance(value, dict) else ()
    return {str(name): each for name, each in found if isinstance(each, dict)}


def _options(providers: Mapping[str, Any], name: str) -> dict[str, Any]:
    options = providers.get(name, {}).get("options")
    return options if isinstance(options, dict) else {}


def _configuration(text: str, tools: Tools) -> str:
    try:
        configuration = json.loads(text or "{}")
    except ValueError:
        configuration = None
    if not isinstance(configuration, dict):
        remedy = f"Start the worker (`septet up`) again with {_CONFIG} corrected, or without it."
        raise AgentError(f"{_CONFIG} is not a JSON object.", remedy=remedy)
    configuration |= {"autoupdate": False, "share": "disabled"}
    if _PERMISSION[tools]:
        configuration["permission"] = _PERMISSION[tools]
    return json.dumps(configuration)


OPENCODE: Final = OpenCode(
    "opencode", _CAPABILITIES, OpenCodeStream, OpenCodeTranscript, "opencode", _LOGIN, _QUIET
)
ADAPTERS: Final = (OPENCODE,)
