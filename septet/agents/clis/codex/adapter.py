"""The `codex` CLI (OpenAI Codex), tested with 0.171.0."""

import hashlib
import json
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from septet.agents.clis.adapter import Adapter, Dialect, Invocation, Machine, Turn, own_variables
from septet.agents.clis.capabilities import Capabilities
from septet.agents.clis.codex.transcript import CodexTranscript
from septet.agents.clis.login_files import LoginFile, TokenFields
from septet.agents.clis.model_place import CHAT, MODELS, RESPONSES, ModelPlace
from septet.agents.clis.own_files import locate
from septet.agents.clis.plain_settings import SettingsFile, read_object
from septet.agents.outcomes.line_stream import LineEvent, LineStream, api_error, count, lines_of, text_of
from septet.agents.outcomes.outcome import NO_USAGE, ExitRecord
from septet.agents.outcomes.stream import read_field
from septet.contracts.facts import Usage
from septet.system.durable import write_atomically

_LOGIN: Final = ("OPENAI_*", "AZURE_OPENAI_*", "CODEX_*")
_QUIET: Final = (
    "check_for_update_on_startup=false",
    "analytics.enabled=false",
    'shell_environment_policy.exclude=["*KEY*","*TOKEN*","*SECRET*"]',
)
"""Its tools see none of its keys. Its retries are settings of a provider that only the user names: they are few,
but at a refused connection it waits for ever. A limit ends that, and the outcome is an error of the API."""
_SETTINGS_FILE: Final = "~/.codex/config.toml"
_LOGIN_FILE: Final = "~/.codex/auth.json"
_HOST_OF_KEYS: Final = "api.openai.com"
_USUAL_PROVIDER: Final = "openai"
_USUAL_ADDRESS: Final = "https://api.openai.com/v1"
_KEY: Final = "CODEX_API_KEY"
"""The one that it takes by itself; a key in `OPENAI_API_KEY` it has only where a provider names that."""
_KEYS: Final = (_KEY, "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY")
_REQUESTS: Final = (*RESPONSES, *CHAT, *MODELS)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_KEPT_SETTINGS: Final = (
    "model", "model_provider", "model_providers", "model_reasoning_effort", "model_reasoning_summary",
    "model_verbosity", "model_context_window", "model_auto_compact_token_limit", "service_tier",
    "preferred_auth_method", "forced_login_method", "forced_chatgpt_workspace_id", "cli_auth_credentials_store",
    "chatgpt_base_url", "openai_base_url", "check_for_update_on_startup", "analytics",
)  # fmt: skip
"""Which model it asks, where, and how it logs in there."""
_CAPABILITIES: Final = Capabilities(
    tested_version="0.171.0",
    memory_mib=200,
    provider="openai",
    tested_since="0.169.0",
    tells=("tokens",),
    schema=True,
    login_files=("~/.codex/auth.json", "~/.codex/config.toml"),
    login_variables=("CODEX_API_KEY", "OPENAI_API_KEY"),
    model_hosts=("api.openai.com", "auth.openai.com", "chatgpt.com"),
    home=("CODEX_HOME", "~/.codex"),
    packages=("~/.codex/septet-schemas",),
    logins=(
        LoginFile(
            "~/.codex/auth.json",
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
    settings=(SettingsFile("~/.codex/config.toml", kept=_KEPT_SETTINGS), SettingsFile("~/.codex/hooks.json")),
    session_copies=("sessions/*/*/*/rollout-*-{id}.jsonl",),
)
_RETRY: Final = "Reconnecting"
_WARNING: Final = re.compile(r"^WARNING:|\b(WARN|ERROR)\b")
_REJECTED: Final = re.compile(r"ERROR codex_core::tools\S{0,100}: error=(patch|.{0,1000}?) ?rejected")
_SPEECH: Final = frozenset({"agent_message", "reasoning", "error"})
"""Items that are no tool's; an `error` among them is a warning, such as of a model that the CLI does not know."""
_NOT_DONE: Final = frozenset({"failed", "declined"})


class Codex(Adapter):
    """The CLI's command line."""

    def arguments(self, turn: Turn, host: Machine) -> list[str]:
        """Return them, most as settings, which `resume` takes too.

        The schema goes into a file of the CLI's own home, named by its content.

        Raises:
            OSError: The schema could not be written.
        """
        arguments = ["exec", *(("resume",) if turn.resume_id is not None else ()), "--json"]
        for setting in (*_QUIET, *_settings(turn)):
            arguments += ["-c", setting]
        if turn.tools == "all" and host.sandboxed:
            arguments.append("--dangerously-bypass-approvals-and-sandbox")
        if turn.tools == "none":  # a reader's folder is empty, and no repository
            arguments.append("--skip-git-repo-check")
        if turn.schema is not None:
            arguments += ["--output-schema", str(_schema_file(turn.schema, host.env))]
        if turn.resume_id is not None:
            arguments.append(turn.resume_id)
        return [*arguments, "-"]

    def model_places(self, invocation: Invocation, host: Machine) -> tuple[ModelPlace, ...]:
        """Return the one provider that it asks, by the user's settings; none where it logs in by a file."""
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
        """Return those of its usual provider's login, where it asks that one."""
        _, name, provider = self._provider(host)
        if name != _USUAL_PROVIDER or provider is not None:
            return ()
        hosts = super().asked_hosts(invocation, host)
        try:
            login = read_object(locate(self, host, _LOGIN_FILE).read_bytes()) or {}
        except OSError:
            return hosts
        has_account_alone = bool(login.get("tokens")) and not login.get("OPENAI_API_KEY")
        return [name for name in hosts if name != _HOST_OF_KEYS] if has_account_alone else hosts

    def named_addresses(self, invocation: Invocation, host: Machine) -> list[str]:
        """Return the addresses of the provider that it asks, and none of those beside it."""
        settings, _, provider = self._provider(host)
        own = (settings.get("openai_base_url"), settings.get("chatgpt_base_url"))
        named = own if provider is None else (provider.get("base_url"),) if isinstance(provider, dict) else ()
        return [*own_variables(invocation.env).values(), *map(str, filter(None, named))]

    def _provider(self, host: Machine) -> tuple[dict[str, Any], object, object]:
        """Return the user's settings, the name of the provider that they choose, and what they say of it."""
        try:
            settings = tomllib.loads(locate(self, host, _SETTINGS_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            settings = {}
        name = settings.get("model_provider", _USUAL_PROVIDER)
        return settings, name, _table(settings, "model_providers").get(str(name))

    def move_models(self, invocation: Invocation, places: Sequence[ModelPlace]) -> Invocation:
        """Return an invocation whose provider is at another address; other providers' keys are left out."""
        own_keys = {name for place in places for name in place.keys}
        env = {name: value for name, value in invocation.env.items() if name not in {*_KEYS} - own_keys}
        settings: list[str] = []
        for place in places:
            env |= {name: key for name, key in place.keys.items() if env.get(name)}
            settings += ["-c", f"{place.name}={json.dumps(place.address)}"]
        at = invocation.argv.index("--json") + 1
        return replace(invocation, argv=(*invocation.argv[:at], *settings, *invocation.argv[at:]), env=env)

    def dialect(self, before: Usage = NO_USAGE) -> Dialect:
        """Return the reader of a new stream; its figures are those of the thread, without `before`."""
        return CodexStream(before)


def _table(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = settings.get(name)
    return found if isinstance(found, dict) else {}


def _settings(turn: Turn) -> list[str]:
    """Return the sandbox and the model; `resume` has no flags for either.

    In `workspace-write` the repository's `.git` is read-only: the engine makes the commit.
    """
    sandbox = "workspace-write" if turn.tools == "all" else "read-only"
    model = [f"model={json.dumps(turn.model)}"] if turn.model is not None else []
    return [f'sandbox_mode="{sandbox}"', 'approval_policy="never"', *model]


def _schema_file(schema: Mapping[str, Any], env: Mapping[str, str]) -> Path:
    content = json.dumps(schema, separators=(",", ":"), sort_keys=True).encode()
    home = Path(env.get("CODEX_HOME") or Path(env.get("HOME", "~"), ".codex")).expanduser()
    path = home / "septet-schemas" / f"{hashlib.sha256(content).hexdigest()[:32]}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    return path


class _Item(msgspec.Struct, gc=False):
    id: Any = None
    type: Any = None
    text: Any = None
    message: Any = None
    status: Any = None


class _Tokens(msgspec.Struct, gc=False):
    input_tokens: Any = 0
    cached_input_tokens: Any = 0
    cache_write_input_tokens: Any = 0
    output_tokens: Any = 0
    reasoning_output_tokens: Any = 0


class _Error(msgspec.Struct, gc=False):
    message: Any = None


class _Event(LineEvent, gc=False):
    thread_id: Any = None
    item: _Item | None = None
    usage: msgspec.Raw = msgspec.Raw()
    message: Any = None
    error: _Error | None = None


_tokens: Final = msgspec.json.Decoder(_Tokens)


class CodexStream(LineStream[_Event]):
    """codex's dialect: no model, no cost, no status; an answer is the last message of a turn that is completed."""

    unknown_session = re.compile(r"no rollout found|thread/resume failed")

    def __init__(self, before: Usage = NO_USAGE) -> None:
        """Take what earlier runs of the thread used."""
        super().__init__(_Event)
        self._before = before

    def begin(self) -> None:
        """Forget what was said."""
        super().begin()
        self._running: set[str] = set()
        self._in_turn = False
        self._spoken_in_turn = False
        self._message: Any = None
        self._used = msgspec.Raw()

    @property
    def usage(self) -> Usage:
        """The usage of this run; the last turn reports the usage of the thread."""
        return _difference(read_field(self._used, _tokens) or _Tokens(), self._before)

    def is_own(self, event: _Event) -> bool:
        """Say so by its type: those of items have no dot."""
        return "." in str(event.type) or event.type == "error"

    def take(self, event: _Event) -> None:
        """Add one event to the facts; nearly all events report an item."""
        item, kind = event.item, event.type
        if item is None:
            self._take_event(event)
        elif kind == "item.completed":
            if item.type == "agent_message":
                self._take_message(item)
            else:
                self._take_completed(item)
        elif kind == "item.started":
            self._take_started(item)
        else:
            self._take_event(event)

    def take_stderr(self, stderr: str, end: ExitRecord) -> None:  # noqa: ARG002 -- the exit code says nothing more
        """Keep the warnings, and the tools that codex's sandbox rejected: no event reports them."""
        for line in lines_of(stderr):
            if _WARNING.search(line):
                self.facts.warn(line)
            rejected = _REJECTED.search(line)
            if rejected is not None:
                self.facts.deny("apply_patch" if rejected[1] == "patch" else "exec_command")

    def _take_event(self, event: _Event) -> None:
        """Add an event that reports no item."""
        facts, kind = self.facts, event.type
        if kind == "thread.started":
            facts.session_id = text_of(event.thread_id)
        elif kind == "error":
            self._take_error(str(event.message))
        elif kind == "turn.completed":
            facts.finished, facts.failure = True, None
            facts.results += 1
            facts.say(self._message, anew=True)
            self._used = event.usage
        elif kind == "turn.failed":
            facts.failure = api_error(None, str(event.error.message if event.error is not None else None))

    def _take_message(self, item: _Item) -> None:
        """A message opens a turn of the model, but for the first one in an open turn."""
        facts = self.facts
        facts.trying_again = None
        if self._spoken_in_turn or not self._in_turn:
            facts.turns += 1
        self._in_turn = self._spoken_in_turn = True
        self._message = item.text

    def _take_started(self, item: _Item) -> None:
        """A tool opens a turn, but in an open one; a turn ends where its tools have answered."""
        if str(item.type) not in _SPEECH:
            if not self._in_turn:
                self.facts.turns += 1
                self._in_turn, self._spoken_in_turn = True, False
            self.facts.tool_calls += 1
            self._running.add(str(item.id))

    def _take_completed(self, item: _Item) -> None:
        kind = item.type
        if kind == "error":
            self.facts.warn(str(item.message))
            return
        self.facts.trying_again = None
        if kind != "reasoning":
            item_id = str(item.id)
            if item_id not in self._running:
                self._take_started(item)
            self._running.discard(item_id)
            self._in_turn = False
            if kind == "file_change" and str(item.status) in _NOT_DONE:
                self.facts.deny("apply_patch")

    def _take_error(self, words: str) -> None:
        if words.startswith(_RETRY):
            self.facts.api_retries += 1
            self.facts.trying_again = api_error(None, words)
        else:
            self.facts.failure = api_error(None, words)


def _difference(thread: _Tokens, before: Usage) -> Usage:
    """Return what this run used; the thread's input holds what came from its cache."""
    cache_read, cache_written = count(thread.cached_input_tokens), count(thread.cache_write_input_tokens)
    uncached = count(thread.input_tokens) - cache_read - cache_written
    return Usage(
        input_tokens=max(uncached - before.input_tokens, 0),
        output_tokens=max(count(thread.output_tokens) - before.output_tokens, 0),
        cache_read_tokens=max(cache_read - before.cache_read_tokens, 0),
        cache_write_tokens=max(cache_written - before.cache_write_tokens, 0),
        reasoning_tokens=max(count(thread.reasoning_output_tokens) - before.reasoning_tokens, 0),
    )


CODEX: Final = Codex("codex", _CAPABILITIES, CodexStream, CodexTranscript, "codex", _LOGIN)
ADAPTERS: Final = (CODEX,)
