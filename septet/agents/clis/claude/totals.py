"""The totals of a claude run, from its events: session, turns, tokens, tasks, warnings and results."""

import re
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

import msgspec

from septet.agents.clis.claude import events
from septet.agents.outcomes.stream import call_of, cost_of, count, read_field, text_of
from septet.contracts.facts import Usage
from septet.system.masking import mask

_LACKED: Final = re.compile(r"(?:<tool_use_error>)?(?:Error: )?No such tool available: ([\w:.-]*\w)")
"""The CLI's answer to the call of a tool that the CLI does not have."""
_SYNTHETIC_MODEL: Final = "<synthetic>"
"""The model of messages that the CLI writes itself, for example about an API error."""
_PIECES_KEPT: Final = 16
_MESSAGES_REMEMBERED: Final = 256
"""How many messages to remember, because events of other messages come between the events of one message."""
_NOTES_KEPT: Final = 20
Counts = tuple[int, ...]
"""Tokens: input, output, cache read, cache written."""
_NO_COUNTS: Final = (0, 0, 0, 0)


@dataclass(slots=True)
class StreamTotals:
    """The totals of the events that were read so far."""

    session_id: str | None = None
    model: str | None = None
    last: events.Event | None = None
    turns: int = 0
    tool_calls: int = 0
    api_retries: int = 0
    results: int = 0
    result: events.Event | None = None
    """The last result of the session itself."""
    stray_result: events.Event | None = None
    """The last result of another session, which counts if the session's own result is missing."""
    bare_result: events.Event | None = None
    """The last object that has a result and lacks a type; it counts if no other result exists."""
    context_tokens: int = 0
    """The tokens read and written for the session's own last message."""
    stop_reason: str | None = None
    """The reason why the session's own last message ended."""
    api_error: str = ""
    """The CLI's word for an API error, in the session's own last message."""
    usage_by_models: Usage | None = None
    """The usage of all models in this run, added up: each result reports the usage since the result before."""
    tasks: events.BackgroundTasks = field(default_factory=events.BackgroundTasks)
    took_back_nothing: bool = False
    """Whether the CLI printed an empty error after its result; the CLI may then end with code 1."""
    warnings: list[str] = field(default_factory=list)
    denied_tools: list[str] = field(default_factory=list)
    lacked_tools: list[str] = field(default_factory=list)
    _words: list[msgspec.Raw] = field(default_factory=list)
    """The texts of the session's own last message, by block."""
    _speaking: Any = None
    """The id of the session's own last message."""
    _reached: dict[str, float] = field(default_factory=dict)
    """The end of each usage limit that is reached now, by the kind of limit, in the CLI's form of a time."""
    _spent: Counts = _NO_COUNTS
    _recent: dict[str, Counts] = field(default_factory=dict)

    @property
    def final(self) -> events.Event | None:
        """The result that counts: the session's own, else another session's, else a result without a type."""
        return self.result or self.stray_result or self.bare_result

    @property
    def is_refused(self) -> bool:
        """Whether the model refused the last request, by the stop reason of the result or of the last message."""
        told = self.final.stop_reason if self.final is not None else None
        return (self.stop_reason if told is None else told) == "refusal"

    @property
    def is_local(self) -> bool:
        """Whether the CLI made the result without a model, for example for a command with a leading slash."""
        result = self.final
        return result is not None and result.num_turns == 0 and not self.turns and _is_of_nothing(result)

    @property
    def pieces(self) -> tuple[str, ...]:
        """The texts of the session's last message, one for each block; empty if a tool call follows."""
        return tuple(filter(None, (read_field(words, events.TEXT) for words in self._words)))

    @property
    def session(self) -> str | None:
        """The id of the session to continue, from the result if possible, because the CLI may change the id."""
        return (text_of(self.final.session_id) if self.final is not None else None) or self.session_id

    @property
    def resets_at(self) -> float | None:
        """The latest end of the reached usage limits, as Unix time in the CLI's unit: seconds or milliseconds."""
        return max(self._reached.values(), default=None)

    @property
    def usage(self) -> Usage:
        """The usage according to the messages; the CLI's total in the result is more exact."""
        return _usage(self._spent, None)

    @property
    def tokens(self) -> int:
        """The number of all tokens of the messages so far."""
        return sum(self._spent)

    def take(self, event: events.Event) -> None:
        """Add one event to the totals."""
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

    def _take_message(self, event: events.Event) -> None:
        message = event.message
        if not isinstance(message, events.Message):
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
        before, now = self._recent.get(str(message.id)), _counts(message.usage)
        if before is None:
            self.model = self.model or text_of(message.model)
            self.turns += own
        if own:
            self.context_tokens = sum(now) or self.context_tokens
        self._count(str(message.id), now, before or _NO_COUNTS)

    def _take_tool_results(self, event: events.Event) -> None:
        content = event.message.content if isinstance(event.message, events.Message) else None
        for block in content if isinstance(content, list) else ():
            words = read_field(block.content, events.TEXT) if block.is_error is True else None
            if words is not None and (found := _LACKED.match(words)) is not None:
                self._note(self.lacked_tools, found[1])

    def _take_words(self, message_id: object, block: events.Block) -> None:
        if block.type == "tool_use" or message_id != self._speaking:
            self._words.clear()
            self._speaking = message_id
        if block.type == "text" and len(self._words) < _PIECES_KEPT:
            self._words.append(block.text.copy())

    def _count(self, message_id: str, now: Counts, before: Counts) -> None:
        """Replace a message's earlier counts `before` in the totals by `now`, the counts of its latest event."""
        self._spent = tuple(spent + new - old for spent, new, old in zip(self._spent, now, before, strict=True))
        self._recent[message_id] = now
        if len(self._recent) > _MESSAGES_REMEMBERED:
            del self._recent[next(iter(self._recent))]

    def _take_result(self, event: events.Event) -> None:
        if event.parent_tool_use_id is not None:
            return
        if event.has_failed and self.final is not None and not self.final.has_failed and _is_of_nothing(event):
            self.took_back_nothing = True
            return
        self.results += 1
        self.tasks.take_result()
        models = read_field(event.model_usage_since_last_result, events.MODELS)
        if self.model is None:
            self.model = next(iter(read_field(event.model_usage, events.MODELS) or models or ()), None)
        if models is not None:
            before = self.usage_by_models or Usage(cost_usd=0.0)
            self.usage_by_models = reduce(Usage.plus, (_usage_by(model) for model in models.values()), before)
        if isinstance(event.session_id, str) and event.session_id != self.session_id:
            self.stray_result = event
        else:
            self.result = event

    def _take_system(self, event: events.Event) -> None:
        if event.subtype == "init":
            self.session_id = text_of(event.session_id) or self.session_id
            self.model = text_of(event.model) or self.model
            for server in read_field(event.mcp_servers, events.SERVERS) or []:
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

    def _take_rate_limit(self, event: events.Event) -> None:
        limit = read_field(event.rate_limit_info, events.RATE_LIMIT)
        if limit is None:
            return
        if limit.status != "rejected":
            self._reached.pop(str(limit.kind), None)
        elif isinstance(limit.resets_at, int | float):
            self._reached[str(limit.kind)] = float(limit.resets_at)

    def _note(self, notes: list[str], text: str) -> None:
        if len(notes) < _NOTES_KEPT:
            notes.append(mask(text)[:160])


def denials_of(result: events.Event) -> tuple[str, ...]:
    """Return the tools that the CLI denied, as `Name` or `Name(argument)`."""
    denials = read_field(result.permission_denials, events.DENIALS) or []
    return tuple(call_of(denial.tool_name, denial.tool_input) for denial in denials[:_NOTES_KEPT])


def _is_of_nothing(result: events.Event) -> bool:
    """Return whether a result has no turn and no token."""
    return count(result.num_turns) == 0 and not any(_counts(read_field(result.usage, events.TOKENS)))


def usage_of(result: events.Event, cost_usd: float | None) -> Usage | None:
    """Return the usage in the field `usage` of a result; `None` if the result has no such field."""
    tokens = read_field(result.usage, events.TOKENS)
    return _usage(_counts(tokens), cost_usd) if tokens is not None else None


def _usage(counts: Counts, cost_usd: float | None) -> Usage:
    input_tokens, output_tokens, cache_read, cache_written = counts
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_written,
        cost_usd=cost_usd,
    )


def _counts(tokens: events.MessageTokens | None) -> Counts:
    """Return the token counts; a value that is no number counts as 0."""
    if tokens is None:
        return _NO_COUNTS
    cache_read, cache_written = tokens.cache_read_input_tokens, tokens.cache_creation_input_tokens
    return tuple(map(count, (tokens.input_tokens, tokens.output_tokens, cache_read, cache_written)))


def _usage_by(model: events.ModelUse) -> Usage:
    tokens = (model.input_tokens, model.output_tokens, model.cache_read_tokens, model.cache_write_tokens)
    return _usage(tuple(map(count, tokens)), cost_of(model.cost))
