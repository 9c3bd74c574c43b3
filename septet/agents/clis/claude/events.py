"""claude's events: the fields that matter, and what they add up to."""

import re
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

import msgspec

from septet.agents.clis.claude.tasks import BackgroundTasks, TaskFields
from septet.agents.outcomes.line_stream import call_of, cost_of, count, text_of
from septet.agents.outcomes.stream import read_field
from septet.contracts.facts import Usage
from septet.system.masking import mask

_NOTHING: Final = msgspec.Raw()
_MESSAGES_REMEMBERED: Final = 256
"""A message comes as one event for each block; those of parallel sub-agents mix, but not by hundreds."""
_NOTES_KEPT: Final = 20
_PIECES_KEPT: Final = 16
_DETAIL_LIMIT: Final = 160
_SYNTHETIC_MODEL: Final = "<synthetic>"
"""The model of messages that the CLI writes itself, such as the words of an API error."""

_LACKED: Final = re.compile(r"(?:<tool_use_error>)?(?:Error: )?No such tool available: ([\w:.-]*\w)")
"""What it answers to the call of a tool that it does not have."""

Counts = tuple[int, int, int, int]
"""Tokens: input, output, cache read, cache written."""


class _Tokens(msgspec.Struct, gc=False):
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


class _Block(msgspec.Struct, gc=False):
    type: Any = None
    text: msgspec.Raw = _NOTHING
    is_error: Any = None
    content: msgspec.Raw = _NOTHING


class _Message(msgspec.Struct, gc=False):
    id: Any = None
    model: Any = None
    usage: _Tokens | None = None
    content: list[_Block] | str | None = None
    stop_reason: Any = None


class Event(TaskFields, gc=False):
    """Any event; the rest of its line is skipped."""

    type: Any = None
    subtype: Any = None
    session_id: Any = None
    parent_tool_use_id: Any = None
    model: Any = None
    message: _Message | str | None = None
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


@dataclass(slots=True)
class StreamTotals:
    """What the events up to now add up to."""

    session_id: str | None = None
    model: str | None = None
    last: Event | None = None
    turns: int = 0
    tool_calls: int = 0
    api_retries: int = 0
    results: int = 0
    result: Event | None = None
    """The last result of the session itself."""
    stray_result: Event | None = None
    """The last result that names another session: it counts where the session's own is missing."""
    bare_result: Event | None = None
    """The last object with a result and no type: it counts where nothing else was said."""
    context_tokens: int = 0
    """Of the session's own last message: what was read for it, and what it said."""
    stop_reason: str | None = None
    """Why the session's own last message ended."""
    api_error: str = ""
    """What the CLI takes for wrong with the API, where it has written that message itself."""
    usage_by_models: Usage | None = None
    """The sum of what each result says all models used since the one before it in this run."""
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)
    took_back_nothing: bool = False
    """The CLI has printed an error of nothing after its result, and may end with 1 for that."""
    warnings: list[str] = field(default_factory=list)
    denied_tools: list[str] = field(default_factory=list)
    lacked_tools: list[str] = field(default_factory=list)
    _words: list[msgspec.Raw] = field(default_factory=list)
    """What the session's own last message says, by block."""
    _speaking: Any = None
    """That message's id."""
    _reached: dict[str, float] = field(default_factory=dict)
    """By kind: when a limit of the account ends that is reached, as the CLI writes it."""
    _spent: Counts = (0, 0, 0, 0)
    _recent: dict[str, _Tokens] = field(default_factory=dict)

    @property
    def final(self) -> Event | None:
        """The result that counts."""
        return self.result or self.stray_result or self.bare_result

    @property
    def is_refused(self) -> bool:
        """Whether the model refused its last request: by the result, or else by its message."""
        told = self.final.stop_reason if self.final is not None else None
        return (self.stop_reason if told is None else told) == "refusal"

    @property
    def is_local(self) -> bool:
        """Whether the CLI itself made the result, as of a command with a leading slash: no model was called."""
        result = self.final
        return result is not None and result.num_turns == 0 and not self.turns and _is_of_nothing(result)

    @property
    def pieces(self) -> tuple[str, ...]:
        """What the session's own last message says, by block; nothing where it called a tool after that."""
        return tuple(filter(None, (read_field(words, TEXT) for words in self._words)))

    @property
    def session(self) -> str | None:
        """The session to go on with: a CLI that has changed it may name it in its result alone."""
        return (text_of(self.final.session_id) if self.final is not None else None) or self.session_id

    @property
    def resets_at(self) -> float | None:
        """When the limits of the account end that are reached now; in seconds since the epoch, or milliseconds."""
        return max(self._reached.values(), default=None)

    @property
    def usage(self) -> Usage:
        """What the messages used: the CLI's own total, in the result, is more exact."""
        return _usage(self._spent, None)

    @property
    def tokens(self) -> int:
        """All tokens of the messages up to now."""
        return sum(self._spent)

    def take(self, event: Event) -> None:
        """Add one event."""
        self.last = event
        if self.session_id is None:
            self.session_id = text_of(event.session_id)
        kind = event.type
        if kind == "assistant":
            self._take_message(event)
        elif kind == "user":
            self._take_tool_results(event)
        elif kind == "result":
            self._take_result(event)
        elif kind == "system":
            self._take_system(event)
        elif kind == "rate_limit_event":
            self._take_rate_limit(event)
        elif kind is None and bytes(event.result):
            self.bare_result = event

    def _take_message(self, event: Event) -> None:
        message = event.message
        if not isinstance(message, _Message):
            return
        own = event.parent_tool_use_id is None
        if own:
            self.stop_reason, self.api_error = text_of(message.stop_reason), text_of(event.error) or ""
        if message.model == _SYNTHETIC_MODEL:
            return
        for block in message.content if isinstance(message.content, list) else ():
            self.tool_calls += block.type == "tool_use"
            if own:
                self._take_words(message.id, block)
        before = self._recent.get(str(message.id))
        if before is None:
            self.model = self.model or text_of(message.model)
            self.turns += own
        if own:
            self.context_tokens = sum((message.usage or _NO_TOKENS).counts()) or self.context_tokens
        if before is None or before != message.usage:
            self._count(message, before)

    def _take_tool_results(self, event: Event) -> None:
        content = event.message.content if isinstance(event.message, _Message) else None
        for block in content if isinstance(content, list) else ():
            words = read_field(block.content, TEXT) if block.is_error is True else None
            if words is not None and (found := _LACKED.match(words)) is not None:
                self._note(self.lacked_tools, found[1])

    def _take_words(self, message_id: object, block: _Block) -> None:
        if block.type == "tool_use" or message_id != self._speaking:
            self._words.clear()
            self._speaking = message_id
        if block.type == "text" and len(self._words) < _PIECES_KEPT:
            self._words.append(block.text.copy())

    def _count(self, message: _Message, before: _Tokens | None) -> None:
        """Count a message's tokens once, however many events it comes in."""
        now = message.usage or _NO_TOKENS
        spent, new, old = self._spent, now.counts(), (before or _NO_TOKENS).counts()
        self._spent = (
            spent[0] + new[0] - old[0],
            spent[1] + new[1] - old[1],
            spent[2] + new[2] - old[2],
            spent[3] + new[3] - old[3],
        )
        self._recent[str(message.id)] = now
        if len(self._recent) > _MESSAGES_REMEMBERED:
            del self._recent[next(iter(self._recent))]

    def _take_result(self, event: Event) -> None:
        if event.parent_tool_use_id is not None:
            return
        if event.has_failed and self.final is not None and not self.final.has_failed and _is_of_nothing(event):
            self.took_back_nothing = True
            return
        self.results += 1
        self.tasks.take_result()
        models = read_field(event.model_usage_since_last_result, _models)
        if self.model is None:
            self.model = next(iter(read_field(event.model_usage, _models) or models or ()), None)
        if models is not None:
            before = self.usage_by_models or Usage(cost_usd=0.0)
            self.usage_by_models = reduce(Usage.plus, (model.usage() for model in models.values()), before)
        if isinstance(event.session_id, str) and event.session_id != self.session_id:
            self.stray_result = event
        else:
            self.result = event

    def _take_system(self, event: Event) -> None:
        if event.subtype == "init":
            self.session_id = text_of(event.session_id) or self.session_id
            self.model = text_of(event.model) or self.model
            for server in read_field(event.mcp_servers, _servers) or []:
                if server.status == "failed":
                    self._note(self.warnings, f"MCP server {server.name} failed.")
        elif event.subtype == "api_retry":
            self.api_retries += 1
        elif event.subtype == "permission_denied":
            self._note(self.denied_tools, str(event.tool_name))
        elif event.subtype == "model_fallback":
            self._note(self.warnings, str(event.content))
        elif event.task_id is not None or event.tasks is not None:
            self.tasks.take(event.subtype, event)

    def _take_rate_limit(self, event: Event) -> None:
        limit = read_field(event.rate_limit_info, _rate_limit)
        if limit is None:
            return
        if limit.status != "rejected":
            self._reached.pop(str(limit.kind), None)
        elif isinstance(limit.resets_at, int | float):
            self._reached[str(limit.kind)] = float(limit.resets_at)

    def _note(self, notes: list[str], text: str) -> None:
        if len(notes) < _NOTES_KEPT:
            notes.append(mask(text)[:_DETAIL_LIMIT])


_NO_TOKENS: Final = _Tokens()


_models: Final = msgspec.json.Decoder(dict[str, _ModelUse])
_servers: Final = msgspec.json.Decoder(list[_McpServer])
_rate_limit: Final = msgspec.json.Decoder(_RateLimit)
_denials: Final = msgspec.json.Decoder(list[_Denial])
_tokens: Final = msgspec.json.Decoder(_Tokens)
ANYTHING: Final = msgspec.json.Decoder(object)
TEXT: Final = msgspec.json.Decoder(str)
ITEMS: Final = msgspec.json.Decoder(list[object])


def denials_of(result: Event) -> tuple[str, ...]:
    """Return the tools that were denied, as `Name` or `Name(argument)`."""
    denials = read_field(result.permission_denials, _denials) or []
    return tuple(call_of(denial.tool_name, denial.tool_input) for denial in denials[:_NOTES_KEPT])


def _is_of_nothing(result: Event) -> bool:
    """Return whether a result is that of no turn, and of no token."""
    return count(result.num_turns) == 0 and not any((read_field(result.usage, _tokens) or _NO_TOKENS).counts())


def usage_of(result: Event, cost_usd: float | None) -> Usage | None:
    """Return a result's own figures; `None` where it has none."""
    tokens = read_field(result.usage, _tokens)
    return _usage(tokens.counts(), cost_usd) if tokens is not None else None


def _usage(counts: Counts, cost_usd: float | None) -> Usage:
    input_tokens, output_tokens, cache_read, cache_written = counts
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_written,
        cost_usd=cost_usd,
    )
