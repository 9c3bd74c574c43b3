"""The `gemini` CLI (Gemini CLI), tested with 0.61.0."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from septet.agents.clis.adapter import Adapter, Invocation, Machine, Turn, option
from septet.agents.clis.capabilities import Capabilities, ModelVariables
from septet.agents.clis.gemini.stream import GeminiStream, GeminiTranscript
from septet.agents.clis.login_files import LoginFile
from septet.agents.clis.models import GENERATE, VERTEX, below
from septet.agents.clis.own_files import read_own_file
from septet.agents.clis.plain_settings import SettingsFile, read_object

_LOGIN: Final = ("GEMINI_*", "GOOGLE_*")
_QUIET: Final[Mapping[str, str]] = {"GEMINI_CLI_NO_RELAUNCH": "true", "GEMINI_TELEMETRY_ENABLED": "false"}
"""Septet's variables. The CLI must not relaunch itself: the new process ignores signals while a tool runs."""
_DEFAULTS: Final = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
"""The variable of a file with default settings, which the user's own settings override. The file limits the CLI's
ten retries, which take minutes; the CLI reads the file only if root owns the file and its folders, as in an
image."""
_HOST_OF_KEYS: Final = "generativelanguage.googleapis.com"
_HOSTS_OF_LOGINS: Final = ("cloudcode-pa.googleapis.com", "oauth2.googleapis.com")
_HOSTS_OF_CLOUD: Final = ("aiplatform.googleapis.com", "oauth2.googleapis.com")
_SETTINGS_FILE: Final = "~/.gemini/settings.json"
_KEYS_OF_CLOUD: Final = ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS")
_LOCATION: Final = re.compile(r"[a-z0-9-]{1,40}")


def _of_versions(*requests: str) -> tuple[str, ...]:
    return tuple(
        each for version in ("v1", "v1beta", "v1alpha", "v1beta1") for each in below(f"/{version}", *requests)
    )


_CAPABILITIES: Final = Capabilities(
    tested_version="0.61.0",
    memory_mib=300,
    provider="gcp.gen_ai",
    tells=("tokens",),
    own_session_id=True,
    login_files=("~/.gemini/oauth_creds.json", "~/.gemini/google_accounts.json", _SETTINGS_FILE),
    login_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"),
    model_variables=(
        ModelVariables("GOOGLE_GEMINI_BASE_URL", ("GEMINI_API_KEY",), _of_versions(*GENERATE)),
        ModelVariables("GOOGLE_VERTEX_BASE_URL", ("GOOGLE_API_KEY",), _of_versions(*VERTEX)),
    ),
    model_hosts=(_HOST_OF_KEYS, *_HOSTS_OF_LOGINS, *_HOSTS_OF_CLOUD),
    logins=(LoginFile("~/.gemini/oauth_creds.json"), LoginFile("~/.gemini/google_accounts.json")),
    settings=(SettingsFile(_SETTINGS_FILE, kept=("security.auth", "selectedAuthType", "model.maxSessionTurns")),),
    session_copies=("tmp/*/chats/session-*-{start}.jsonl", "tmp/*/chats/session-*-{start}.json"),
)


class Gemini(Adapter):
    """The adapter of the gemini CLI."""

    def arguments(self, turn: Turn, host: Machine) -> list[str]:
        """Return the program's arguments for `turn`; the CLI can only read, unless the turn permits all tools."""
        del host
        mode = "yolo" if turn.tools == "all" else "default"
        session = option("--resume", turn.resume_id) or option("--session-id", turn.session_id)
        own = ("-o", "stream-json", "--skip-trust", "--approval-mode", mode)
        return [*own, *session, *option("-m", turn.model)]

    def environment(self, turn: Turn, host: Machine) -> dict[str, str]:
        """Return the environment, with the path of Septet's default settings unless the user names another."""
        defaults = str(Path(__file__).with_name("defaults.json"))
        return {_DEFAULTS: defaults, **super().environment(turn, host)}

    def asked_hosts(self, invocation: Invocation, host: Machine) -> Collection[str]:
        """Return the network hosts for the chosen kind of login: a Gemini key, a cloud's key, or a Google user."""
        if not super().asked_hosts(invocation, host):
            return ()
        env, login = invocation.env, self._chosen_login(host)
        if env.get("GEMINI_API_KEY") and login in {"", "gemini-api-key"}:
            return (_HOST_OF_KEYS,)
        if login == "vertex-ai" or (not login and any(map(env.get, _KEYS_OF_CLOUD))):
            location = env.get("GOOGLE_CLOUD_LOCATION", "")
            place = (f"{location}-aiplatform.googleapis.com",) if _LOCATION.fullmatch(location) else ()
            return (*_HOSTS_OF_CLOUD, *place)
        return _HOSTS_OF_LOGINS

    def _chosen_login(self, host: Machine) -> str:
        """Return the kind of login that the user's settings choose; empty if they choose none."""
        settings = read_object(read_own_file(self, host, _SETTINGS_FILE)) or {}
        try:
            chosen = settings.get("security", {}).get("auth", {}).get("selectedType")
        except AttributeError:
            return ""
        return str(chosen or settings.get("selectedAuthType") or "")


GEMINI: Final = Gemini("gemini", _CAPABILITIES, GeminiStream, GeminiTranscript, "gemini", _LOGIN, _QUIET)
ADAPTERS: Final = (GEMINI,)
