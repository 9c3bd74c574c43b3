"""The `claude` CLI (Claude Code), tested with 2.1.332; and `scripted`, which has the same stream."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from septet.agents.clis.adapter import Adapter, Invocation, Machine, Turn, option
from septet.agents.clis.capabilities import Capabilities, ModelVariables
from septet.agents.clis.claude.stream import ClaudeStream, ClaudeTranscript
from septet.agents.clis.login_files import LoginFile, TokenFields
from septet.agents.clis.models import MESSAGES, MODELS, ModelPlace, below
from septet.agents.clis.plain_settings import SettingsFile
from septet.contracts.order import Tools
from septet.errors import AgentError

_LOGIN: Final = ("ANTHROPIC_*", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_MAX_OUTPUT_TOKENS")
_QUIET: Final[Mapping[str, str]] = {
    "CLAUDE_CODE_MAX_RETRIES": "2",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
}
"""The CLI's own ten retries take minutes, even for a refused key, so Temporal retries instead: no agent runs
while Temporal waits. Sub-agents and commands run in the foreground, so that a turn ends with its result."""
_TOOLS: Final[Mapping[Tools, tuple[str, ...]]] = {
    "all": ("--dangerously-skip-permissions", "--disallowedTools", "Monitor,ScheduleWakeup,CronCreate"),
    "read": ("--tools", "Read,Glob,Grep"),
    "none": ("--tools", ""),
}
"""The options for each kind of tools. The disallowed tools could make the CLI continue after its result, in spite
of `_QUIET`."""
_MANY_TURNS: Final = ("--input-format", "stream-json", "--replay-user-messages")
"""The options with which the CLI reads turns from stdin, and repeats each turn on stdout when the turn begins."""
_CAPABILITIES: Final = Capabilities(
    tested_version="2.1.332",
    memory_mib=400,
    provider="anthropic",
    tested_since="2.1.197",
    own_session_id=True,
    keeps_model=True,
    schema=True,
    without_tools=True,
    input_stream=True,
    turn_limit=True,
    login_files=("~/.claude/.credentials.json", "~/.claude.json"),
    login_variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    model_hosts=("api.anthropic.com", "platform.claude.com", "console.anthropic.com"),
    model_variables=(
        ModelVariables(
            "ANTHROPIC_BASE_URL",
            ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
            ("HEAD /", *below("/v1", *MESSAGES, *MODELS)),
            "https://api.anthropic.com",
        ),
    ),
    home=("CLAUDE_CONFIG_DIR", "~/.claude"),
    session_files="projects/*/{id}.jsonl",
    packages=("~/.claude/local",),
    logins=(
        LoginFile(
            "~/.claude/.credentials.json",
            kept=("claudeAiOauth", "organizationUuid"),
            tokens=TokenFields(
                "claudeAiOauth", "accessToken", "refreshToken", "expiresAt", document_owner=("organizationUuid",)
            ),
        ),
    ),
    settings=(SettingsFile("~/.claude/settings.json"), SettingsFile("~/.claude/settings.local.json")),
)


@dataclass(frozen=True, slots=True)
class Claude(Adapter):
    """The adapter of a CLI with claude's command line and stream."""

    minds_root: bool = True
    """Whether the CLI refuses to skip permissions if it runs as root and outside a sandbox."""

    def arguments(self, turn: Turn, host: Machine) -> list[str]:
        """Return the arguments of the program for `turn`; a warm process gets neither schema nor limits.

        A warm process would apply the schema and limits of its first turn to all turns.

        Raises:
            AgentError: The CLI would run as root outside a sandbox.
        """
        if self._as_root(turn, host) and not host.sandboxed:
            raise AgentError(
                f"{self.name} refuses to work unattended as root.",
                remedy="Start the worker (`septet up`) again as another user; in a container or sandbox, "
                "start it with SEPTET_SANDBOXED=true.",
            )
        arguments = ["-p", "--output-format", "stream-json", "--verbose", *_TOOLS[turn.tools]]
        arguments += option("--resume", turn.resume_id) or option("--session-id", turn.session_id)
        if turn.warm:
            return [*arguments, *_MANY_TURNS, *option("--model", turn.model)]
        if turn.schema is not None:
            arguments += ["--json-schema", json.dumps(turn.schema, separators=(",", ":"))]
        limit = None if turn.max_turns is None else str(turn.max_turns)
        budget = None if turn.max_usd is None else f"{turn.max_usd:.6f}"
        arguments += [*option("--model", turn.model), *option("--max-turns", limit)]
        return [*arguments, *option("--max-budget-usd", budget)]

    def environment(self, turn: Turn, host: Machine) -> dict[str, str]:
        """Return the environment for `turn`; `IS_SANDBOX` lets a CLI that runs as root skip permissions."""
        env = Adapter.environment(self, turn, host)
        return {**env, "IS_SANDBOX": "1"} if self._as_root(turn, host) else env

    def model_places(self, invocation: Invocation, host: Machine) -> tuple[ModelPlace, ...]:
        """Return the CLI's model API with its address, its keys, and the headers in `ANTHROPIC_CUSTOM_HEADERS`."""
        lines = invocation.env.get("ANTHROPIC_CUSTOM_HEADERS", "").splitlines()
        pairs = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        return tuple(replace(place, fields=tuple(pairs)) for place in Adapter.model_places(self, invocation, host))

    def _as_root(self, turn: Turn, host: Machine) -> bool:
        return self.minds_root and host.uid == 0 and turn.tools == "all"


CLAUDE: Final = Claude("claude", _CAPABILITIES, ClaudeStream, ClaudeTranscript, "claude", _LOGIN, _QUIET)
SCRIPTED: Final = Claude(
    "scripted",
    Capabilities(
        tested_version="",
        memory_mib=50,
        own_session_id=True,
        keeps_model=True,
        schema=True,
        without_tools=True,
        input_stream=True,
        turn_limit=True,
        needs_login=False,
        home=("SEPTET_SCRIPTED_HOME", "~/.septet-scripted"),
        session_files="sessions/{id}.json",
        notes_of_workspace="starts/*-{order}-????????-*",
    ),
    ClaudeStream,
    ClaudeTranscript,
    "septet-scripted-agent",
    ("SEPTET_SCRIPTED_*",),
    _QUIET,
    minds_root=False,
)
ADAPTERS: Final = (CLAUDE, SCRIPTED)
