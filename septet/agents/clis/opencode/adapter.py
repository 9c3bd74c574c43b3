"""The `opencode` CLI, tested with 1.18.33."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

from septet.agents.clis.adapter import Adapter, Invocation, Machine, Turn, option, own_variables
from septet.agents.clis.capabilities import Capabilities
from septet.agents.clis.login_files import LoginFile, TokenFields
from septet.agents.clis.model_place import ANY, CHAT, GENERATE, MESSAGES, MODELS, RESPONSES, ModelPlace, below
from septet.agents.clis.opencode.transcript import OpenCodeTranscript
from septet.agents.clis.own_files import locate
from septet.agents.clis.plain_settings import SettingsFile, read_object
from septet.agents.outcomes import endings
from septet.agents.outcomes.api_errors import REFUSAL
from septet.agents.outcomes.endings import Ending
from septet.agents.outcomes.line_stream import LineEvent, LineStream, api_error, call_of, cost_of, count, text_of
from septet.agents.outcomes.outcome import NO_USAGE, ExitRecord
from septet.agents.outcomes.stream import read_field
from septet.contracts.budget import LONGEST_PAUSE_SECONDS
from septet.contracts.facts import Usage
from septet.contracts.limits import Tools
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
"""No setting bounds its retries, of which its stream says nothing: the idle limit ends them."""
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
"""By opencode's names: the addresses, the variables of the keys, and the requests."""
_LOGIN_HOSTS: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic": ("console.anthropic.com",),
    "openai": ("auth.openai.com", "chatgpt.com"),
}
"""Further hosts that opencode reaches with a login in its file."""


def _host_of(provider: str) -> str:
    """Return the host of a provider that it knows."""
    return _PROVIDERS[provider][0].split("/")[2]


_VARIABLE: Final = re.compile(r"\{env:([A-Za-z0-9_]+)\}")
_OWN_KEY: Final = "apiKey"
_KEPT_SETTINGS: Final = (
    "$schema", "model", "small_model", "provider", "enabled_providers", "disabled_providers",
)  # fmt: skip
"""The settings of its model and its providers."""
_CAPABILITIES: Final = Capabilities(
    tested_version="1.18.33",
    memory_mib=600,
    without_tools=True,
    keeps_model=True,
    login_files=("~/.local/share/opencode/auth.json", "~/.config/opencode/opencode.json"),
    login_variables=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", _CONFIG),
    model_hosts=(*map(_host_of, _PROVIDERS), *chain(*_LOGIN_HOSTS.values())),
    home=("XDG_DATA_HOME", "~/.local/share"),
    logins=(
        LoginFile(
            "~/.local/share/opencode/auth.json",
            tokens=TokenFields("*", "access", "refresh", "expires", owner=("type", "accountId")),
        ),
    ),
    settings=(SettingsFile("~/.config/opencode/opencode.json", kept=_KEPT_SETTINGS),),
    session_database="opencode.db",
)
_PERMISSION: Final[Mapping[Tools, Mapping[str, str]]] = {
    "all": {},
    "read": {"*": "deny", "read": "allow", "grep": "allow", "glob": "allow", "list": "allow"},
    "none": {"*": "deny"},
}
_DENIED: Final = re.compile(r"rejected permission|rule which prevents")
_INVALID: Final = "invalid"
"""The tool that replaces a tool which opencode does not have."""
_LACKED: Final = re.compile(r"Model tried to call unavailable tool '([^']+)'")
_STATUS_BY_NAME: Final = {"ProviderAuthError": 401, "ContextOverflowError": 413, "ProviderModelNotFoundError": 404}
_STOPS: Final = frozenset({"wall_limit", "idle_limit", "exited", *endings.RESOURCES})
"""Causes that end an agent from outside; `exited` if a signal ended it."""
_STOPS_ON_REQUEST: Final = frozenset(
    ("ended", why) for why in (endings.TURN_LIMIT, endings.AFTER_RESULT, endings.BUDGET)
)
_CUT: Final = Ending(
    "limit",
    "output_tokens",
    "The answer was cut at the model's limit of output tokens.",
    "Raise the model's `limit.output` in opencode's configuration, then run `septet retry`.",
)


class OpenCode(Adapter):
    """The CLI's command line."""

    def arguments(self, turn: Turn, host: Machine) -> list[str]:
        """Return them."""
        del host
        arguments = ["run", "--format", "json", *(("--auto",) if turn.tools == "all" else ())]
        if turn.resume_id is not None:
            arguments += ["--session", turn.resume_id]
        return [*arguments, *option("--model", turn.model)]

    def environment(self, turn: Turn, host: Machine) -> dict[str, str]:
        """Return the environment; its configuration holds the permissions of the CLI.

        Raises:
            AgentError: The configuration in the worker's environment is not a JSON object.
        """
        env = super().environment(turn, host)
        return {**env, _CONFIG: _configuration(env.get(_CONFIG, ""), turn.tools)}

    def provider_of(self, host: Machine, model: str | None) -> str:
        """Return the provider in the model's name, or in the name of the model in the settings."""
        given = read_object(host.env.get(_CONFIG, "").encode()) or {}
        in_file = read_object(_content(locate(self, host, _SETTINGS_FILE))) or {}
        asked = model or given.get("model") or in_file.get("model")
        return asked.partition("/")[0] if isinstance(asked, str) and "/" in asked else ""

    def keys_of(self, host: Machine, provider: str) -> dict[str, str]:
        """Return only the keys of a known provider; its login in the file takes precedence."""
        places = {place.name: place for place in self.model_places(Invocation((), host.env, b""), host)}
        if provider in places:
            return {name: key for name, key in places[provider].keys.items() if key}
        return {} if provider in _PROVIDERS else super().keys_of(host, provider)

    def model_places(self, invocation: Invocation, host: Machine) -> tuple[ModelPlace, ...]:
        """Return the providers whose keys are in variables, and the providers that opencode's variable configures.

        A key in the user's settings is not returned, nor is a provider with a login in the file. A provider that
        the command line and configuration do not select permits no requests.
        """
        chosen = self._asked_providers(invocation, host)
        given = _providers(invocation.env.get(_CONFIG, "").encode())
        in_file = _providers(_content(locate(self, host, _SETTINGS_FILE)))
        logins = read_object(_content(locate(self, host, _LOGIN_FILE))) or {}
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
        """Return the hosts of selected providers without a key that stays outside."""
        chosen = self._asked_providers(invocation, host)
        kept = {place.name for place in self.model_places(invocation, host) if place.is_kept}
        asked = [name for name in _PROVIDERS if name not in kept and (chosen is None or name in chosen)]
        return (*map(_host_of, asked), *chain(*(_LOGIN_HOSTS.get(name, ()) for name in asked)))

    def named_addresses(self, invocation: Invocation, host: Machine) -> list[str]:
        """Return the addresses of the selected providers alone."""
        variables = own_variables({name: text for name, text in invocation.env.items() if name != _CONFIG})
        chosen = self._asked_providers(invocation, host)
        given = _providers(invocation.env.get(_CONFIG, "").encode())
        providers = {**_providers(_content(locate(self, host, _SETTINGS_FILE))), **given}
        asked = [provider for name, provider in providers.items() if chosen is None or name in chosen]
        return [*variables.values(), *map(json.dumps, asked)]

    def _asked_providers(self, invocation: Invocation, host: Machine) -> frozenset[str] | None:
        """Return the providers that the command line and configuration select; `None` if they select none."""
        argv, given = invocation.argv, read_object(invocation.env.get(_CONFIG, "").encode()) or {}
        in_file = read_object(_content(locate(self, host, _SETTINGS_FILE))) or {}
        on_line = argv[argv.index("--model") + 1] if "--model" in argv[:-1] else None
        main = on_line or given.get("model") or in_file.get("model")
        if not isinstance(main, str) or "/" not in main:
            return None
        roles = (each for kind in ("agent", "mode") for each in _objects(given.get(kind)).values())
        others = (*(each.get("small_model") for each in (given, in_file)), *(role.get("model") for role in roles))
        return frozenset(str(model).partition("/")[0] for model in (main, *others) if model)

    def move_models(self, invocation: Invocation, places: Sequence[ModelPlace]) -> Invocation:
        """Return an invocation whose configuration has these providers at other addresses."""
        env = dict(invocation.env)
        configuration = json.loads(env.get(_CONFIG) or "{}")
        for place in places:
            options = {"baseURL": place.address, **_own_key(place)}
            providers = configuration.setdefault("provider", {})
            provider = providers.setdefault(place.name, {})
            provider["options"] = {**(provider.get("options") or {}), **options}
            env |= {name: key for name, key in place.keys.items() if env.get(name)}
        return replace(invocation, env={**env, _CONFIG: json.dumps(configuration)})


def _content(path: Path) -> bytes:
    """Return the bytes of a user's file; empty if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _own_key(place: ModelPlace) -> dict[str, str]:
    """Return the option with a provider's own key, if its configuration has that key."""
    return {_OWN_KEY: place.keys[_OWN_KEY]} if place.keys.get(_OWN_KEY) else {}


def _providers(configuration: bytes) -> dict[str, Any]:
    """Return the providers of a configuration, as far as they are objects."""
    return _objects((read_object(configuration) or {}).get("provider"))


def _objects(value: object) -> dict[str, dict[str, Any]]:
    """Return those values of an object that are objects themselves."""
    found = value.items() if isinstance(value, dict) else ()
    return {str(name): each for name, each in found if isinstance(each, dict)}


def _options(providers: Mapping[str, Any], name: str) -> dict[str, Any]:
    options = providers.get(name, {}).get("options")
    return options if isinstance(options, dict) else {}


def _configuration(text: str, tools: Tools) -> str:
    """Return the configuration in the environment, with what the engine needs added to it."""
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


class _Cache(msgspec.Struct, frozen=True, gc=False):
    read: Any = 0
    write: Any = 0


class _Tokens(msgspec.Struct, frozen=True, gc=False):
    input: Any = 0
    output: Any = 0
    reasoning: Any = 0
    cache: _Cache = _Cache()


class _State(msgspec.Struct, frozen=True, gc=False):
    error: Any = None
    input: msgspec.Raw = msgspec.Raw()


class _Part(msgspec.Struct, gc=False):
    text: Any = None
    tool: Any = None
    state: _State = _State()
    reason: Any = None
    tokens: _Tokens = _Tokens()
    cost: Any = None


class _ErrorData(msgspec.Struct, frozen=True, gc=False):
    message: Any = None
    status: Any = msgspec.field(name="statusCode", default=None)
    headers: dict[str, Any] = msgspec.field(name="responseHeaders", default_factory=dict)


class _Error(msgspec.Struct, gc=False):
    name: Any = None
    data: _ErrorData = _ErrorData()


class _Event(LineEvent, gc=False):
    session_id: Any = msgspec.field(name="sessionID", default=None)
    part: _Part | None = None
    error: _Error | None = None


def _used_in(step: _Part) -> Usage:
    """Return what a step used, in the project's words: its output holds no reasoning."""
    tokens, reasoning = step.tokens, count(step.tokens.reasoning)
    return Usage(
        input_tokens=count(tokens.input),
        output_tokens=count(tokens.output) + reasoning,
        cache_read_tokens=count(tokens.cache.read),
        cache_write_tokens=count(tokens.cache.write),
        reasoning_tokens=reasoning,
        cost_usd=cost_of(step.cost),
    )


class OpenCodeStream(LineStream[_Event]):
    """opencode's dialect: no last event; the answer is the last text of a last step that calls no tool."""

    unknown_session = re.compile(r"Session not found")

    def __init__(self) -> None:
        """Begin with nothing said."""
        super().__init__(_Event)

    def begin(self) -> None:
        """Forget what was said."""
        super().begin()
        self._used = NO_USAGE
        self._last_step = 0
        self._has_erred = False
        self._overflow: Ending | None = None

    @property
    def usage(self) -> Usage:
        """What the steps used up to now."""
        return self._used

    @property
    def context_tokens(self) -> int:
        """The tokens that the last step read and wrote."""
        return self._last_step

    def is_own(self, event: _Event) -> bool:
        """Return whether the event names a session, which a part does not."""
        return isinstance(event.session_id, str)

    def take(self, event: _Event) -> None:
        """Add one event to the facts."""
        facts, kind = self.facts, event.type
        if facts.session_id is None:
            facts.session_id = text_of(event.session_id)
        if kind == "error" and event.error is not None:
            self._take_error(event.error)
        elif event.part is None:
            return
        elif kind == "step_start":
            facts.turns += 1
            facts.results = 0  # the turn continues
            facts.finished, facts.failure = False, None
            facts.hush()
            facts.pieces.clear()
        elif kind == "text":
            facts.say(event.part.text, anew=True)
            facts.keep_piece(event.part.text)
        elif kind == "tool_use":
            facts.tool_calls += 1
            facts.spoke_last = False
            self._overflow = None
            error = event.part.state.error
            if error is not None and _DENIED.search(str(error)):
                arguments = read_field(event.part.state.input, _arguments)
                facts.deny(call_of(event.part.tool, arguments))
            elif event.part.tool == _INVALID:
                facts.lack((read_field(event.part.state.input, _arguments) or {}).get("error"), _LACKED)
        elif kind == "step_finish":
            self._take_step_end(event.part)

    def _take_step_end(self, part: _Part) -> None:
        facts, used = self.facts, _used_in(part)
        self._used = self._used.plus(used)
        self._last_step = used.tokens or self._last_step
        facts.finished = part.reason != "tool-calls"
        facts.spoke_last = facts.spoke_last and facts.finished
        facts.results += facts.finished
        if part.reason == "stop" and facts.spoke_last and facts.failure and facts.failure.ended == "api_error":
            facts.failure = None  # the answer came after the error: the CLI has retried
        if part.reason == "length":
            facts.failure = _CUT
        elif part.reason == "content-filter":
            facts.failure = endings.api_ending(REFUSAL, "")

    def _take_error(self, error: _Error) -> None:
        """Take what went wrong, and nothing of the server's headers and body, which the event holds too."""
        words = str(error.data.message or error.name)
        if error.name == "MessageAbortedError":
            self.facts.interrupted = words
        elif error.name == "MessageOutputLengthError":
            self.facts.failure = _CUT
        else:
            self._has_erred, self.facts.spoke_last = True, False
            code = error.data.status
            status = code if isinstance(code, int) else _STATUS_BY_NAME.get(str(error.name))
            self.facts.failure = _not_before(api_error(status, words), error.data.headers.get("retry-after"))
            if self.facts.failure.kind == "context_length":
                self._overflow = self.facts.failure

    def _ending(self, end: ExitRecord, stderr: str) -> Ending:
        """Return how the run ended: its last step alone does not show whether another step was due.

        After any error the CLI ends with 1, even if it has recovered from that error (issue 50062 of opencode). A
        session that is too long is summarised, in a step that calls no tool, and continued (issue 39573), or
        summarised again for as long as the CLI may.
        """
        facts = self.facts
        if end.cause == "exited" and end.signal is None:
            if self._has_erred and facts.finished and facts.failure is None:
                return endings.with_result(facts.text, facts.denials)
        elif end.cause in _STOPS or (end.cause, end.why) in _STOPS_ON_REQUEST:
            if self._overflow is not None:
                return self._overflow
            facts.finished = facts.finished and end.cause not in _STOPS
        return super()._ending(end, stderr)


def _not_before(failure: Ending, retry_after: object) -> Ending:
    seconds = float(retry_after) if isinstance(retry_after, str) and retry_after.isdecimal() else math.inf
    return (
        replace(failure, retry_after_seconds=seconds, retry_is_named=True)
        if failure.retryable and seconds <= LONGEST_PAUSE_SECONDS
        else failure
    )


_arguments: Final = msgspec.json.Decoder(dict[str, Any])


OPENCODE: Final = OpenCode(
    "opencode", _CAPABILITIES, OpenCodeStream, OpenCodeTranscript, "opencode", _LOGIN, _QUIET
)
ADAPTERS: Final = (OPENCODE,)
