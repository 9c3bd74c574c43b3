"""claude's events: the fields that matter."""

from typing import Any, Final

import msgspec

from septet.agents.clis.claude.tasks import TaskFields
from septet.agents.outcomes.line_stream import call_of, cost_of, count
from septet.agents.outcomes.stream import read_field
from septet.contracts.facts import Usage

_NOTHING: Final = msgspec.Raw()
_NOTES_KEPT: Final = 20


Counts = tuple[int, int, int, int]
"""MessageTokens: input, output, cache read, cache written."""


class MessageTokens(msgspec.Struct, gc=False):
    """The tokens of a message or a result."""

    input_tokens: Any = 0
    output_tokens: Any = 0
    cache_read_input_tokens: Any = 0
    cache_creation_input_tokens: Any = 0

    def counts(self) -> Counts:
        """Return the tokens; what is no number is none."""
        return (
            count(self.input_tokens),
            count(self.output_tokens),
            count(self.cache_read_input_tokens),
            count(self.cache_creation_input_tokens),
        )


class Block(msgspec.Struct, gc=False):
    """A block of a message: a text, the call of a tool, or its result."""

    type: Any = None
    text: msgspec.Raw = _NOTHING
    is_error: Any = None
    content: msgspec.Raw = _NOTHING


class Message(msgspec.Struct, gc=False):
    """A message of the model or of a tool."""

    id: Any = None
    model: Any = None
    usage: MessageTokens | None = None
    content: list[Block] | str | None = None
    stop_reason: Any = None


class Event(TaskFields, gc=False):
    """Any event; the rest of its line is skipped."""

    type: Any = None
    subtype: Any = None
    session_id: Any = None
    parent_tool_use_id: Any = None
    model: Any = None
    message: Message | str | None = None
    is_error: Any = None
    result: msgspec.Raw = _NOTHING
    structured_output: msgspec.Raw = _NOTHING
    errors: msgspec.Raw = _NOTHING
    usage: msgspec.Raw = _NOTHING
    num_turns: Any = None
    total_cost_usd: Any = None
    model_usage: msgspec.Raw = msgspec.field(name="modelUsage", default=_NOTHING)
    model_usage_since_last_result: msgspec.Raw = _NOTHING
    permission_denials: msgspec.Raw = _NOTHING
    api_error_status: Any = None
    error: Any = None
    stop_reason: Any = None
    terminal_reason: Any = None
    tool_name: Any = None
    mcp_servers: msgspec.Raw = _NOTHING
    content: Any = None
    rate_limit_info: msgspec.Raw = _NOTHING

    @property
    def name(self) -> str:
        """The event's type, and its subtype where it has one."""
        return "/".join(part for part in (self.type, self.subtype) if isinstance(part, str))

    @property
    def has_failed(self) -> bool:
        """Whether a result says that it is none: by `is_error`, whatever the subtype, or by an error subtype."""
        return self.is_error not in (None, False) or str(self.subtype).startswith("error")


class _ModelUse(msgspec.Struct, gc=False):
    cost: Any = msgspec.field(name="costUSD", default=0.0)
    input_tokens: Any = msgspec.field(name="inputTokens", default=0)
    output_tokens: Any = msgspec.field(name="outputTokens", default=0)
    cache_read_tokens: Any = msgspec.field(name="cacheReadInputTokens", default=0)
    cache_write_tokens: Any = msgspec.field(name="cacheCreationInputTokens", default=0)

    def usage(self) -> Usage:
        """Return it; a count that is no number is none."""
        return Usage(
            input_tokens=count(self.input_tokens),
            output_tokens=count(self.output_tokens),
            cache_read_tokens=count(self.cache_read_tokens),
            cache_write_tokens=count(self.cache_write_tokens),
            cost_usd=cost_of(self.cost),
        )


class _Denial(msgspec.Struct, gc=False):
    tool_name: Any = None
    tool_input: Any = None


class _McpServer(msgspec.Struct, gc=False):
    name: Any = None
    status: Any = None


class _RateLimit(msgspec.Struct, gc=False):
    status: Any = None
    resets_at: Any = msgspec.field(name="resetsAt", default=None)
    kind: Any = msgspec.field(name="rateLimitType", default=None)


NO_TOKENS: Final = MessageTokens()


MODELS: Final = msgspec.json.Decoder(dict[str, _ModelUse])
SERVERS: Final = msgspec.json.Decoder(list[_McpServer])
RATE_LIMIT: Final = msgspec.json.Decoder(_RateLimit)
_denials: Final = msgspec.json.Decoder(list[_Denial])
_tokens: Final = msgspec.json.Decoder(MessageTokens)
ANYTHING: Final = msgspec.json.Decoder(object)
TEXT: Final = msgspec.json.Decoder(str)
ITEMS: Final = msgspec.json.Decoder(list[object])


def denials_of(result: Event) -> tuple[str, ...]:
    """Return the tools that were denied, as `Name` or `Name(argument)`."""
    denials = read_field(result.permission_denials, _denials) or []
    return tuple(call_of(denial.tool_name, denial.tool_input) for denial in denials[:_NOTES_KEPT])


def is_of_nothing(result: Event) -> bool:
    """Return whether a result is that of no turn, and of no token."""
    return count(result.num_turns) == 0 and not any((read_field(result.usage, _tokens) or NO_TOKENS).counts())


def usage_of(result: Event, cost_usd: float | None) -> Usage | None:
    """Return a result's own figures; `None` where it has none."""
    tokens = read_field(result.usage, _tokens)
    return usage_from(tokens.counts(), cost_usd) if tokens is not None else None


def usage_from(counts: Counts, cost_usd: float | None) -> Usage:
    """Return tokens and a cost in the project's words."""
    input_tokens, output_tokens, cache_read, cache_written = counts
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_written,
        cost_usd=cost_usd,
    )
