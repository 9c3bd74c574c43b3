"""The `copilot` CLI (GitHub Copilot CLI), tested with 1.0.102."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

from septet.agents.clis.adapter import Adapter, Invocation, Machine, Turn, option
from septet.agents.clis.capabilities import Capabilities, CompiledCode, ModelVariables
from septet.agents.clis.login_files import LoginFile
from septet.agents.clis.models import AZURE, CHAT, MESSAGES, MODELS, RESPONSES, below
from septet.agents.clis.plain_settings import SettingsFile
from septet.agents.outcomes.line_stream import NOBODY_ANSWERED, LineEvent, LineStream, api_error
from septet.agents.outcomes.outcome import Ending
from septet.agents.outcomes.stream import text_of
from septet.agents.outcomes.transcript import EventTranscript, TranscriptEntry, to_object, to_text


class CopilotTranscript(EventTranscript):
    """Turns copilot's stream into entries; the result is the last message without a tool call."""

    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the transcript's entries for an event."""
        kind, data = event.get("type"), to_object(event.get("data"))
        if kind == "assistant.message":
            words = to_text(data.get("content"))
            self._last = "" if data.get("toolRequests") else words
            yield TranscriptEntry("text", words)
        elif kind == "tool.execution_start":
            yield self.begin_call(data.get("toolCallId"), data.get("toolName"), data.get("arguments"))
        elif kind == "tool.execution_complete":
            error = data.get("error")
            output = to_object(data.get("result")).get("content") or to_object(error).get("message") or error
            yield self.end_call(data.get("toolCallId"), output)
        elif kind == "model.call_failure":
            yield TranscriptEntry("error", to_text(data.get("errorMessage")))
        elif kind == "session.error":
            yield TranscriptEntry("error", to_text(data.get("message")))
        elif kind == "abort":
            yield TranscriptEntry("error", f"The agent was interrupted: {to_text(data.get('reason'))}.")
        elif kind == "result" and event.get("exitCode") == 0:
            yield TranscriptEntry("result", self._last)


_LOGIN: Final = ("COPILOT_*",)
"""`COPILOT_GITHUB_TOKEN` is the CLI's own key; no agent gets `GH_TOKEN` and `GITHUB_TOKEN`, the forge's keys."""
_QUIET: Final[Mapping[str, str]] = {"COPILOT_AUTO_UPDATE": "false"}
_ADDRESS: Final = "COPILOT_PROVIDER_BASE_URL"
_CAPABILITIES: Final = Capabilities(
    tested_version="1.0.102",
    memory_mib=300,
    tells=(),
    own_session_id=True,
    resumes_after_kill=False,
    keeps_model=True,
    login_files=("~/.copilot/config.json",),
    login_variables=("COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY"),
    model_variables=(
        ModelVariables(
            _ADDRESS,
            ("COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN"),
            (*CHAT, *RESPONSES, *MODELS, *MESSAGES, *below("/v1", *MESSAGES), *below("/openai", *AZURE)),
        ),
    ),
    model_hosts=(
        "api.github.com",
        "api.githubcopilot.com",
        "api.individual.githubcopilot.com",
        "api.business.githubcopilot.com",
        "api.enterprise.githubcopilot.com",
    ),
    home=("COPILOT_HOME", "~/.copilot"),
    packages=("~/.cache/copilot/pkg",),
    unpacks="~/.cache/copilot/pkg",
    compiled=CompiledCode("NODE_COMPILE_CACHE", "~/.cache/copilot/compiled", ("help", "config")),
    logins=(
        LoginFile(
            "~/.copilot/config.json",
            kept=(
                "copilot_tokens",
                "copilotTokens",
                "logged_in_users",
                "loggedInUsers",
                "last_logged_in_user",
                "lastLoggedInUser",
                "store_token_plaintext",
                "storeTokenPlaintext",
            ),
        ),
    ),
    settings=(
        SettingsFile("~/.copilot/settings.json", kept=("model",)),
        SettingsFile("~/.copilot/mcp-config.json"),
    ),
    session_copies=("session-state/{id}/*", "session-state/{id}/*/*"),
    closing="Total usage est",
)  # fmt: skip
_LACKED: Final = re.compile(r"Tool '([^']+)' does not exist")


class Copilot(Adapter):
    """The adapter of the copilot CLI."""

    def arguments(self, turn: Turn, host: Machine) -> list[str]:
        """Return the arguments of the program for `turn`.

        In a sandbox the CLI may use every visible path. Otherwise the CLI denies paths outside the worktree.
        """
        arguments = ["--output-format", "json", "--no-auto-update", "--no-ask-user", "--allow-all-tools"]
        arguments += ["--allow-all-paths"] if host.sandboxed else []
        if turn.tools != "all":
            arguments += [f"--deny-tool={tool}" for tool in ("write", "shell")]
        if turn.resume_id is not None:
            arguments.append(f"--resume={turn.resume_id}")
        elif turn.session_id is not None:
            arguments += ["--session-id", turn.session_id]
        return [*arguments, *option("--model", turn.model)]

    def asked_hosts(self, invocation: Invocation, host: Machine) -> Collection[str]:
        """Return GitHub's network hosts; empty if the user has chosen another provider."""
        return () if invocation.env.get(_ADDRESS) else super().asked_hosts(invocation, host)


class _Error(msgspec.Struct, gc=False):
    code: Any = None
    message: Any = None


class _Data(msgspec.Struct, gc=False):
    model: Any = None
    content: Any = None
    requests: msgspec.Raw = msgspec.field(name="toolRequests", default=msgspec.Raw())
    call_id: Any = msgspec.field(name="toolCallId", default=None)
    tool: Any = msgspec.field(name="toolName", default=None)
    error: _Error | str | None = None
    message: Any = None
    status: Any = msgspec.field(name="statusCode", default=None)
    failure_kind: Any = msgspec.field(name="failureKind", default=None)
    error_message: Any = msgspec.field(name="errorMessage", default=None)
    reason: Any = None


class _Event(LineEvent, gc=False):
    data: _Data | None = None
    session_id: Any = msgspec.field(name="sessionId", default=None)
    exit_code: Any = msgspec.field(name="exitCode", default=None)


class CopilotStream(LineStream[_Event]):
    """Reads copilot's stream, which reports no tokens; the answer is the last message without a tool call."""

    event_type = _Event
    unknown_session = re.compile(r"No session, task, or name matched")

    def __init__(self) -> None:
        super().__init__()
        self._tools: dict[str, str] = {}
        self._unreached = False

    def is_own(self, event: _Event) -> bool:
        """Return whether an object is an event: it has `data` or, at a run's end, a session's id."""
        return event.data is not None or isinstance(event.session_id, str)

    def take(self, event: _Event) -> None:
        """Add what one event reports to the facts of the run."""
        kind = event.type
        if kind == "result":
            self._take_result(event)
        elif event.data is None:
            return
        elif kind == "assistant.message":
            self._take_message(event.data)
        elif kind == "assistant.turn_start":
            self.facts.turns += 1
        elif kind == "tool.execution_start":
            self.facts.tool_calls += 1
            self._tools[str(event.data.call_id)] = str(event.data.tool)
        elif kind == "tool.execution_complete":
            self._take_tool_end(event.data)
        else:
            self._take_trouble(str(kind), event.data)

    def _take_message(self, data: _Data) -> None:
        facts = self.facts
        facts.model = text_of(data.model) or facts.model
        facts.failure = facts.trying_again = None
        facts.hush()
        if bytes(data.requests) in (b"", b"[]"):
            facts.say(data.content)

    def _take_tool_end(self, data: _Data) -> None:
        tool = self._tools.pop(str(data.call_id), "")
        if isinstance(data.error, _Error) and data.error.code == "denied":
            self.facts.deny(tool)
        elif data.error is not None:
            self.facts.lack(data.error.message if isinstance(data.error, _Error) else data.error, _LACKED)

    def _take_trouble(self, kind: str, data: _Data) -> None:
        facts = self.facts
        if kind == "model.call_failure":
            facts.model = facts.model or text_of(data.model)
            self._unreached = data.failure_kind == "transport"
            facts.trying_again = self._api_error(data.status, str(data.error_message))
        elif kind == "assistant.turn_retry":
            facts.api_retries += 1
        elif kind == "session.error":
            words = str(data.message)
            empty = "No response was returned" in words
            facts.failure = Ending("no_result", "empty", words) if empty else self._api_error(data.status, words)
        elif kind == "abort":
            facts.interrupted = str(data.reason)

    def _take_result(self, event: _Event) -> None:
        facts = self.facts
        facts.results += 1
        facts.session_id = text_of(event.session_id)
        facts.finished = event.exit_code == 0 and not facts.interrupted

    def _api_error(self, status: object, words: str) -> Ending:
        answer = status if isinstance(status, int) else None
        return api_error(NOBODY_ANSWERED if answer is None and self._unreached else answer, words)


COPILOT: Final = Copilot("copilot", _CAPABILITIES, CopilotStream, CopilotTranscript, "copilot", _LOGIN, _QUIET)
ADAPTERS: Final = (COPILOT,)
