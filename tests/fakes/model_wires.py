"""The formats of four model APIs that CLIs use: reading requests, and streaming answers."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

Event = tuple[str, dict[str, Any] | str]
"""The name of a server-sent event, which may be empty, and its data."""
Refusal = tuple[int, dict[str, Any], Mapping[str, str]]
"""A status, a body, and headers."""

RESULT: Final = "\0a tool's result"
"""Stands in a conversation for a tool's result."""
SCRIPT: Final = "exec"
"""A tool that takes a script, which calls all other tools: codex offers its own models no other shell."""
USED: Final = {"input": 1000, "output": 20, "cached": 200}
_MODEL_IN_PATH: Final = re.compile(r"models/([^:]+):")


@dataclass(frozen=True)
class Call:
    """A call of the shell, or of the tool that takes a structured answer."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Said:
    """The model's answer in one turn: text, or a call."""

    text: str = ""
    call: Call | None = None


class Messages:
    """Anthropic Messages."""

    def heard(self, body: dict[str, Any]) -> Iterator[str]:
        for message in body.get("messages", []):
            content = message.get("content", "")
            for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if block.get("type") == "tool_result":
                    yield RESULT
                elif message.get("role") == "user" and block.get("type") == "text":
                    yield block["text"]

    def tools(self, body: dict[str, Any]) -> list[str]:
        return [tool["name"] for tool in body.get("tools", []) if "name" in tool]

    def whole(self, said: Said, model: str) -> dict[str, Any]:
        return self._message(model) | {
            "content": [self._block(said)],
            "stop_reason": "tool_use" if said.call else "end_turn",
        }

    def stream(self, said: Said, model: str) -> list[Event]:
        block = self._block(said)
        if said.call is None:
            begun, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": said.text}
        else:
            begun = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(said.call.arguments)}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": self._message(model)},
            {"type": "ping"},
            {"type": "content_block_start", "index": 0, "content_block": begun},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "tool_use" if said.call else "end_turn", "stop_sequence": None},
                "usage": self._usage(),
            },
            {"type": "message_stop"},
        ]
        return [(event["type"], event) for event in events]

    def error(self, status: int, message: str) -> dict[str, Any]:
        kinds = {400: "invalid_request_error", 401: "authentication_error", 529: "overloaded_error"}
        return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}

    def usage_limit(self, until: float) -> Refusal:
        """Return the answer at a key's monthly limit of spending."""
        moment = datetime.fromtimestamp(until, UTC)
        regained = f"You will regain access on {moment:%Y-%m-%d} at {moment:%H:%M} UTC."
        return 400, self.error(400, f"You have reached your specified API usage limits. {regained}"), {}

    def _message(self, model: str) -> dict[str, Any]:
        about = {"id": fresh("msg"), "type": "message", "role": "assistant", "model": model, "content": []}
        return about | {"stop_reason": None, "stop_sequence": None, "usage": self._usage()}

    def _usage(self) -> dict[str, Any]:
        cache = {"cache_read_input_tokens": USED["cached"], "cache_creation_input_tokens": 0}
        return {"input_tokens": USED["input"], "output_tokens": USED["output"], **cache}

    def _block(self, said: Said) -> dict[str, Any]:
        if said.call is None:
            return {"type": "text", "text": said.text}
        return {
            "type": "tool_use",
            "id": fresh("toolu"),
            "name": said.call.name,
            "input": dict(said.call.arguments),
        }


class Responses:
    """OpenAI Responses."""

    def heard(self, body: dict[str, Any]) -> Iterator[str]:
        for item in body.get("input", []):
            if str(item.get("type", "")).endswith("_output"):
                yield RESULT
            elif item.get("role") == "user":
                yield from (part["text"] for part in item.get("content", []) if "text" in part)

    def tools(self, body: dict[str, Any]) -> list[str]:
        items = (item for item in body.get("input", []) if item.get("type") == "additional_tools")
        offered = [*body.get("tools", []), *(tool for item in items for tool in item["tools"])]
        spaces = [tool.get("tools", []) if tool.get("type") == "namespace" else [tool] for tool in offered]
        return [tool.get("name") or tool.get("type", "") for space in spaces for tool in space]

    def whole(self, said: Said, model: str) -> dict[str, Any]:
        return self._response(model) | {
            "status": "completed",
            "output": [self._item(said)],
            "usage": self._usage(),
        }

    def stream(self, said: Said, model: str) -> list[Event]:
        item = self._item(said)
        response = self._response(model)
        done = response | {"status": "completed", "output": [item], "usage": self._usage()}
        begun = item | {"status": "in_progress"} | ({"content": []} if item["type"] == "message" else {})
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": response},
            {"type": "response.output_item.added", "output_index": 0, "item": begun},
        ]
        if said.call is None:
            place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            events.append({"type": "response.output_text.delta", **place, "delta": said.text})
        events += [
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]
        return [(event["type"], event | {"sequence_number": number}) for number, event in enumerate(events)]

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": "error", "code": str(status)}}

    def usage_limit(self, until: float) -> Refusal:
        """Return the answer at a plan's limit of hours."""
        about = {"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus"}
        return 429, {"error": {**about, "resets_at": int(until)}}, {}

    def _response(self, model: str) -> dict[str, Any]:
        about = {"id": fresh("resp"), "object": "response", "created_at": int(time.time()), "model": model}
        return about | {"status": "in_progress", "output": [], "usage": None}

    def _usage(self) -> dict[str, Any]:
        return {
            "input_tokens": USED["input"],
            "input_tokens_details": {"cached_tokens": USED["cached"]},
            "output_tokens": USED["output"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": USED["input"] + USED["output"],
        }

    def _item(self, said: Said) -> dict[str, Any]:
        if said.call is not None:
            about = {"id": fresh("fc"), "call_id": fresh("call"), "status": "completed", "name": said.call.name}
            if said.call.name == SCRIPT:
                return about | {"type": "custom_tool_call", "input": said.call.arguments["input"]}
            return about | {"type": "function_call", "arguments": json.dumps(said.call.arguments)}
        content = [{"type": "output_text", "text": said.text, "annotations": []}]
        about = {"type": "message", "id": fresh("msg"), "role": "assistant", "status": "completed"}
        return about | {"content": content}


class Chat:
    """OpenAI chat completions."""

    def heard(self, body: dict[str, Any]) -> Iterator[str]:
        for message in body.get("messages", []):
            content = message.get("content") or ""
            if message.get("role") == "tool":
                yield RESULT
            elif message.get("role") == "user":
                parts = [{"text": content}] if isinstance(content, str) else content
                yield from (part["text"] for part in parts if "text" in part)

    def tools(self, body: dict[str, Any]) -> list[str]:
        return [tool["function"]["name"] for tool in body.get("tools", []) if "function" in tool]

    def whole(self, said: Said, model: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": said.text or None, **self._calls(said, {})}
        choice = {"index": 0, "message": message, "finish_reason": self._why(said)}
        return self._about(model, "chat.completion") | {"choices": [choice], "usage": self._usage()}

    def stream(self, said: Said, model: str) -> list[Event]:
        about = self._about(model, "chat.completion.chunk")

        def piece(delta: dict[str, Any], why: str | None = None) -> Event:
            return "", about | {"choices": [{"index": 0, "delta": delta, "finish_reason": why}]}

        first = {"content": said.text} if said.call is None else self._calls(said, {"index": 0})
        return [
            piece({"role": "assistant", "content": ""}),
            piece(first),
            piece({}, self._why(said)),
            ("", about | {"choices": [], "usage": self._usage()}),
            ("", "[DONE]"),
        ]

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": "error", "code": str(status), "param": None}}

    def usage_limit(self, until: float) -> Refusal:
        """Return the answer at a daily limit of requests, which does not name its end."""
        del until
        limit = "Rate limit reached for gpt-5.4 on requests per day (RPD): Limit 200, Used 200, Requested 1."
        return 429, self.error(429, limit), {"retry-after-ms": "200"}

    def _about(self, model: str, kind: str) -> dict[str, Any]:
        return {"id": fresh("chatcmpl"), "object": kind, "created": int(time.time()), "model": model}

    def _calls(self, said: Said, place: dict[str, Any]) -> dict[str, Any]:
        if said.call is None:
            return {}
        function = {"name": said.call.name, "arguments": json.dumps(said.call.arguments)}
        return {"tool_calls": [{**place, "id": fresh("call"), "type": "function", "function": function}]}

    def _usage(self) -> dict[str, Any]:
        return {
            "prompt_tokens": USED["input"],
            "completion_tokens": USED["output"],
            "total_tokens": USED["input"] + USED["output"],
            "prompt_tokens_details": {"cached_tokens": USED["cached"]},
        }

    def _why(self, said: Said) -> str:
        return "tool_calls" if said.call is not None else "stop"


class Gemini:
    """Gemini generateContent."""

    def heard(self, body: dict[str, Any]) -> Iterator[str]:
        for content in body.get("contents", []):
            for part in content.get("parts", []):
                if "functionResponse" in part:
                    yield RESULT
                elif content.get("role", "user") == "user" and "text" in part:
                    yield part["text"]

    def tools(self, body: dict[str, Any]) -> list[str]:
        offered = (tool.get("functionDeclarations", []) for tool in body.get("tools", []))
        return [function["name"] for functions in offered for function in functions]

    def whole(self, said: Said, model: str) -> dict[str, Any]:
        return self._answer([self._part(said)], model, over=True)

    def stream(self, said: Said, model: str) -> list[Event]:
        first, last = ([self._part(said)], [{"text": ""}]) if said.call is None else ([], [self._part(said)])
        begun = [("", self._answer(first, model))] if first else []
        return [*begun, ("", self._answer(last, model, over=True))]

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {
            "error": {"code": status, "message": message, "status": "UNAUTHENTICATED" if status == 401 else ""}
        }

    def usage_limit(self, until: float) -> Refusal:
        """Return the answer at a daily limit of requests, which does not name its end."""
        del until
        metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
        about = "You exceeded your current quota, please check your plan and billing details."
        quota = {"quotaMetric": metric, "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}
        failure = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [quota]}
        message = f"{about} \n* Quota exceeded for metric: {metric}, limit: 20"
        answer = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": [failure]}
        return 429, {"error": answer}, {}

    def _part(self, said: Said) -> dict[str, Any]:
        if said.call is None:
            return {"text": said.text}
        return {"functionCall": {"name": said.call.name, "args": dict(said.call.arguments)}}

    def _answer(self, parts: list[dict[str, Any]], model: str, *, over: bool = False) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        answer: dict[str, Any] = {"candidates": [candidate], "modelVersion": model, "responseId": "stub"}
        if over:
            candidate["finishReason"] = "STOP"
            total = USED["input"] + USED["output"]
            counts = {"promptTokenCount": USED["input"], "candidatesTokenCount": USED["output"]}
            answer["usageMetadata"] = counts | {
                "totalTokenCount": total,
                "cachedContentTokenCount": USED["cached"],
            }
        return answer


Wire = Messages | Responses | Chat | Gemini


def wire_of(path: str) -> Wire | None:
    if path.endswith("/messages"):
        return Messages()
    if path.endswith("/responses"):
        return Responses()
    if path.endswith("/chat/completions"):
        return Chat()
    return Gemini() if "enerateContent" in path else None


def model_in(path: str, body: dict[str, Any]) -> str:
    found = _MODEL_IN_PATH.search(path)
    return found[1] if found else str(body.get("model", "stub"))


_COUNTER: Final = iter(range(1, 10**9))


def fresh(kind: str) -> str:
    return f"{kind}_{time.time_ns():x}{next(_COUNTER):06x}"
