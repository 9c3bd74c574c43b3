"""Find the answer in a final text in which a model also prints its reasoning or its tool calls.

Each family of models has its own tags: `<think>…</think>`, `[THINK]…[/THINK]`, the channels of harmony and of
Gemma. Some models print only the closing tag, because the prompt's template has the opening tag. A server that
does not know a family's template also prints the special tokens around a message.
"""

import json
import re
from collections.abc import Iterator
from typing import Final

from septet.answers.json_values import value_spans, whole_scalar

_NAME: Final = r"(?:[\w-]+:)?(?:think|thinking|thoughts?|reasoning|analysis|reflection|(?:reasoning_)?scratchpad)"
_MARK: Final = re.compile(
    rf"(?P<opens><{_NAME}>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|START_THINKING\|>|<\|inner_prefix\|>"
    r"|<\|channel>(?:thought\b)?)"
    rf"|(?P<closes></{_NAME}>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|END_THINKING\|>|<\|inner_suffix\|>"
    r"|<channel\|>)"
    r"|(?P<answers><\|channel\|>\s*+final\b[^<>|]*+(?:<\|constrain\|>[^<>|]*+)?<\|message\|>)"
    r"|(?P<channel><\|channel\|>)",
    re.IGNORECASE,
)
_MESSAGE_END: Final = re.compile(r"<\|(?:end|return|call|start)\|>")
# The rest of harmony's channels after a server has removed the special tokens.
_BARE_ANALYSIS: Final = re.compile(r"\s*+analysis\S")
_BARE_FINAL: Final = "assistantfinal"
# The tokens around a message in the templates of models; a token behind a blank is a word of a sentence.
_TURN_ENDS: Final = re.compile(
    r"(?<![ \t`\"'])(?:<\|(?:im_end|eot_id|eom_id|end|return|endoftext|end_of_text|end_of_box|END_RESPONSE"
    r"|END_OF_TURN_TOKEN)\|>|</s>|<end_of_turn>|<turn\|>|<eos>)\s*\Z"
)
_TURN_BEGINS: Final = re.compile(
    r"\s*+(?:<\|im_start\|>(?:assistant)?|<\|start_header_id\|>assistant<\|end_header_id\|>"
    r"|<\|(?:START_RESPONSE|begin_of_box)\|>)\s*+"
)
_ANSWER_TAGS: Final = re.compile(r"\s*<(answer|response|output|final_answer)>(?P<inside>.*)</\1>\s*", re.DOTALL)
_DEEPEST_INDENT: Final = 200


def answer_part(text: str) -> str:
    """Return the text after the last closing tag of reasoning, up to the next opening tag.

    Tags inside a JSON value do not count. An opening tag without a closing tag counts only at the start of a line.
    Text inside tags is never returned. Without a closing tag, the result begins at the start of `text`.
    """
    if _BARE_ANALYSIS.match(text) and _BARE_FINAL in text:
        return text.rpartition(_BARE_FINAL)[2]
    marks = list(_marks_outside_values(text))
    last = next((mark for mark in reversed(marks) if mark["closes"] or mark["answers"]), None)
    start = last.end() if last else 0
    ends = (mark.start() for mark in marks if mark.start() >= start and _is_printed_by_model(mark))
    part = text[start : next(ends, len(text))]
    if last and last["answers"]:
        return _MESSAGE_END.split(part, maxsplit=1)[0]
    part = _TURN_BEGINS.sub("", part, count=1) if _TURN_BEGINS.match(part) else part
    tagged = _ANSWER_TAGS.fullmatch(part)
    return tagged["inside"] if tagged else part


def without_turn_end(text: str) -> str:
    """Return a text without the special tokens that end a model's turn."""
    for _ in range(3):
        text = _TURN_ENDS.sub("", text)
    return text


def has_printed_marks(text: str) -> bool:
    """Return whether a model itself printed a tag of reasoning or of an answer, and did not only quote one."""
    return any(map(_is_printed_by_model, _marks_in(text)))


def _marks_in(text: str) -> Iterator[re.Match[str]]:
    """Yield the tags of reasoning in a text, such as `<think>`, except tags in backquotes or quotes."""
    for mark in _MARK.finditer(text):
        before, behind = text[max(mark.start() - 1, 0) : mark.start()], text[mark.end() : mark.end() + 1]
        if before != behind or before not in {"`", '"', "'"}:
            yield mark


def _marks_outside_values(text: str) -> Iterator[re.Match[str]]:
    """Yield the tags of reasoning outside the text's JSON values."""
    if _MARK.search(text) is None or whole_scalar(text):
        return
    spans = value_spans(text)
    start, end = next(spans, (len(text), len(text)))
    for mark in _marks_in(text):
        while end <= mark.start():
            start, end = next(spans, (len(text), len(text) + 1))
        if mark.start() < start:
            yield mark


def _is_printed_by_model(mark: re.Match[str]) -> bool:
    """Return whether the model itself printed a tag: the tag names a channel or begins a line."""
    if mark["channel"] or mark["answers"]:
        return True
    before = mark.string[max(mark.start() - _DEEPEST_INDENT, 0) : mark.start()]
    return not before.rpartition("\n")[2].strip() and (len(before) < _DEEPEST_INDENT or "\n" in before)


# The calls of families of models, each at the start of a line.
_OPENING: Final = re.compile(
    r"^[ \t]*+(?:<(?:[\w-]+:)?(?:function_calls?|invoke|tool_calls?|tool_use)\b|<function=|\[TOOL_CALLS\]"
    r"|<[|\uff5c](?:tool|python)[_\u2581][^<>|\uff5c]*+[|\uff5c]?>|<\uff5cDSML\uff5c|<\|START_ACTION\|>)",
    re.MULTILINE,
)
_CLOSING: Final = re.compile(
    r"(?:</(?:[\w-]+:)?[\w-]+>|</?[|\uff5c]?[^<>|\uff5c]*+[|\uff5c][^<>|\uff5c]*+>|[}\]])\s*+\Z"
)
_NAMES: Final = frozenset({"name", "tool", "tool_name"})
_ARGUMENTS: Final = frozenset({"arguments", "parameters", "input", "args"})
_BESIDE: Final = frozenset({"type", "id"})


def ends_in_printed_call(text: str) -> bool:
    """Return whether a final text ends in a printed tool call, whole or cut off, or is only a call as JSON.

    A call inside a JSON value or a fence, or with prose after it, is a quotation.
    """
    part = answer_part(text).strip()
    if _is_json_call(part):
        return True
    openings = [match.start() for match in _OPENING.finditer(part)]
    if not openings or any(start < openings[-1] < end for start, end in value_spans(part)):
        return False
    call = part[openings[-1] :]
    return _CLOSING.search(call) is not None or "</" not in call


def _is_json_call(text: str) -> bool:
    try:
        value = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict):
        return False
    arguments = [value[key] for key in value.keys() & _ARGUMENTS]
    is_named = any(isinstance(value.get(key), str) for key in _NAMES)
    others = value.keys() - _NAMES - _ARGUMENTS - _BESIDE
    return is_named and not others and len(arguments) == 1 and isinstance(arguments[0], dict | str)
