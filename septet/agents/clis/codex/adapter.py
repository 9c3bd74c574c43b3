"""The `codex` CLI (OpenAI Codex), tested with 0.171.0."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from septet.agents.clis.adapter import Adapter, Dialect, Invocation, Machine, Turn, own_variables
from septet.agents.clis.capabilities import Capabilities
from septet.agents.clis.codex.stream import CodexStream, CodexTranscript
from septet.agents.clis.login_files import LoginFile, TokenFields
from septet.agents.clis.models import CHAT, MODELS, RESPONSES, ModelPlace
from septet.agents.clis.own_files import read_own_file
from septet.agents.clis.plain_settings import SettingsFile, read_document, read_object
from septet.agents.outcomes.outcome import NO_USAGE
from septet.contracts.facts import Usage
from septet.system.durable import write_atomically

_LOGIN: Final = ("OPENAI_*", "AZURE_OPENAI_*", "CODEX_*")
_QUIET: Final = (
    "check_for_update_on_startup=false",
    "analytics.enabled=false",
    'shell_environment_policy.exclude=["*KEY*","*TOKEN*","*SECRET*"]',
)
"""Settings against update checks and telemetry, and one that hides the CLI's keys from tools. The number of
retries is a setting of a provider that the user names. Retries are few, but after a refused connection the CLI
waits forever: then a limit of time ends the CLI, and the outcome is an API error."""
_SETTINGS_FILE: Final = "~/.codex/config.toml"
_LOGIN_FILE: Final = "~/.codex/auth.json"
_USUAL_PROVIDER: Final = "openai"
_USUAL_ADDRESS: Final = "https://api.openai.com/v1"
_KEY: Final = "CODEX_API_KEY"
"""The variable of the key that the CLI reads; `OPENAI_API_KEY` is read only if a provider names that variable."""
_KEYS: Final = (_KEY, "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY")
_REQUESTS: Final = (*RESPONSES, *CHAT, *MODELS)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_KEPT_SETTINGS: Final = (
    "model", "model_provider", "model_providers", "model_reasoning_effort", "model_reasoning_summary",
    "model_verbosity", "model_context_window", "model_auto_compact_token_limit", "service_tier",
    "preferred_auth_method", "forced_login_method", "forced_chatgpt_workspace_id", "cli_auth_credentials_store",
    "chatgpt_base_url", "openai_base_url", "check_for_update_on_startup", "analytics",
)  # fmt: skip
_CAPABILITIES: Final = Capabilities(
    tested_version="0.171.0",
    memory_mib=200,
    provider="openai",
    tested_since="0.169.0",
    tells=("tokens",),
    schema=True,
    login_files=(_LOGIN_FILE, _SETTINGS_FILE),
    login_variables=("CODEX_API_KEY", "OPENAI_API_KEY"),
    model_hosts=("api.openai.com", "auth.openai.com", "chatgpt.com"),
    home=("CODEX_HOME", "~/.codex"),
    packages=("~/.codex/septet-schemas",),
    logins=(
        LoginFile(
            _LOGIN_FILE,
            tokens=TokenFields(
                "tokens",
                "access_token",
                "refresh_token",
                owner=("account_id",),
                replaced=("id_token",),
                noted=("last_refresh",),
            ),
        ),
    ),
    settings=(SettingsFile(_SETTINGS_FILE, kept=_KEPT_SETTINGS), SettingsFile("~/.codex/hooks.json")),
    session_copies=("sessions/*/*/*/rollout-*-{id}.jsonl",),
)


class Codex(Adapter):
    """The adapter of the codex CLI."""

    def arguments(self, turn: Turn, host: Machine) -> list[str]:
        """Return the program's arguments for `turn`: mostly settings (`-c`), which `exec resume` accepts too.

        The answer's schema is written to a file in the CLI's own folder.

        Raises:
            OSError: The schema could not be written.
        """
        arguments = ["exec", *(("resume",) if turn.resume_id is not None else ()), "--json"]
        # In `workspace-write` the repository's `.git` is read-only: the engine makes the commit.
        sandbox = "workspace-write" if turn.tools == "all" else "read-only"
        model = (f"model={json.dumps(turn.model)}",) if turn.model is not None else ()
        for setting in (*_QUIET, f'sandbox_mode="{sandbox}"', 'approval_policy="never"', *model):
            arguments += ["-c", setting]
        if turn.tools == "all" and host.sandboxed:
            arguments.append("--dangerously-bypass-approvals-and-sandbox")
        if turn.tools == "none":  # a turn without tools works in an empty folder that is no repository
            arguments.append("--skip-git-repo-check")
        if turn.schema is not None:
            arguments += ["--output-schema", str(_schema_file(turn.schema, host.env))]
        if turn.resume_id is not None:
            arguments.append(turn.resume_id)
        return [*arguments, "-"]

    def model_places(self, invocation: Invocation, host: Machine) -> tuple[ModelPlace, ...]:
        """Return the model API that the user's settings choose; empty if the CLI logs in with a file."""
        settings, name, provider = self._provider(host)
        env = invocation.env
        if name == _USUAL_PROVIDER and provider is None:
            address = settings.get("openai_base_url") or env.get("OPENAI_BASE_URL") or _USUAL_ADDRESS
            keys = {each: env.get(each, "") for each in _CAPABILITIES.login_variables}
            return (ModelPlace("openai_base_url", str(address), keys, _REQUESTS),) if keys[_KEY] else ()
        if not isinstance(provider, dict) or not _PLAIN_NAME.fullmatch(str(name)):
            return ()
        headers = _table(provider, "env_http_headers")
        keys = {str(each): env.get(str(each), "") for each in (provider.get("env_key"), *headers.values()) if each}
        address = str(provider.get("base_url", ""))
        place = ModelPlace(f"model_providers.{name}.base_url", address, keys, _REQUESTS, tuple(headers))
        fields, query = _table(provider, "http_headers"), _table(provider, "query_params")
        own_fields = tuple((str(field), str(value)) for field, value in fields.items())
        return (replace(place, query_names=(*place.query_names, *map(str, query)), fields=own_fields),)

    def asked_hosts(self, invocation: Invocation, host: Machine) -> Collection[str]:
        """Return the network hosts of OpenAI's model and login; empty if the settings choose another provider."""
        _, name, provider = self._provider(host)
        if name != _USUAL_PROVIDER or provider is not None:
            return ()
        hosts = super().asked_hosts(invocation, host)
        login = read_object(read_own_file(self, host, _LOGIN_FILE)) or {}
        has_account_alone = bool(login.get("tokens")) and not login.get("OPENAI_API_KEY")
        return [name for name in hosts if name != "api.openai.com"] if has_account_alone else hosts

    def named_addresses(self, invocation: Invocation, host: Machine) -> list[str]:
        """Return the values of `own_variables`, and the addresses that settings name for the chosen provider."""
        settings, _, provider = self._provider(host)
        own = (settings.get("openai_base_url"), settings.get("chatgpt_base_url"))
        named = own if provider is None else (provider.get("base_url"),) if isinstance(provider, dict) else ()
        return [*own_variables(invocation.env).values(), *map(str, filter(None, named))]

    def _provider(self, host: Machine) -> tuple[dict[str, Any], object, object]:
        """Return the user's settings, the name of the chosen provider, and the settings of this provider."""
        settings = read_document(_SETTINGS_FILE, read_own_file(self, host, _SETTINGS_FILE)) or {}
        name = settings.get("model_provider", _USUAL_PROVIDER)
        return settings, name, _table(settings, "model_providers").get(str(name))

    def move_models(self, invocation: Invocation, places: Sequence[ModelPlace]) -> Invocation:
        """Return the invocation with the addresses and keys of `places`, and without keys of other providers."""
        own_keys = {name for place in places for name in place.keys}
        env = {name: value for name, value in invocation.env.items() if name not in {*_KEYS} - own_keys}
        settings: list[str] = []
        for place in places:
            env |= {name: key for name, key in place.keys.items() if env.get(name)}
            settings += ["-c", f"{place.name}={json.dumps(place.address)}"]
        at = invocation.argv.index("--json") + 1
        return replace(invocation, argv=(*invocation.argv[:at], *settings, *invocation.argv[at:]), env=env)

    def dialect(self, before: Usage = NO_USAGE) -> Dialect:
        """Return the stream's reader, which subtracts `before`: codex reports the usage of the whole session."""
        return CodexStream(before)


def _table(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = settings.get(name)
    return found if isinstance(found, dict) else {}


def _schema_file(schema: Mapping[str, Any], env: Mapping[str, str]) -> Path:
    content = json.dumps(schema, separators=(",", ":"), sort_keys=True).encode()
    home = Path(env.get("CODEX_HOME") or Path(env.get("HOME", "~"), ".codex")).expanduser()
    path = home / "septet-schemas" / f"{hashlib.sha256(content).hexdigest()[:32]}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    return path


CODEX: Final = Codex("codex", _CAPABILITIES, CodexStream, CodexTranscript, "codex", _LOGIN)
ADAPTERS: Final = (CODEX,)
