"""The output stream of a scripted run: events in claude's form, with their totals."""

from __future__ import annotations

import json
import os
import time

from septet.agents.scripted.sessions import new_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import RawIOBase
    from typing import Any, BinaryIO

    from septet.agents.scripted.arguments import Arguments
    from septet.agents.scripted.scenario import Scenario
    from septet.agents.scripted.sessions import ScriptedSession

VERSION = "1.0.0"
MODEL = "scripted-1"
TOOLS = ("Bash", "Edit", "Read", "Write")
_CHARACTERS_PER_TOKEN = 4


class TooManyTurnsError(Exception):
    """The run has reached `--max-turns`."""


class Stream:
    """Prints the events of a run. A turn is one message of the model: a text, or one call of a tool."""

    def __init__(
        self, out: BinaryIO | RawIOBase, arguments: Arguments, scenario: Scenario, session: ScriptedSession
    ) -> None:
        """Take the file to print to, the options, the scenario and the session; print nothing yet."""
        self._out = out
        self.arguments = arguments
        self.scenario = scenario
        self.session = session
        self.model = arguments.model or MODEL
        self.usage = dict.fromkeys(
            ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"), 0
        )
        self._started = time.monotonic()
        self._unread = 0
        self.turns = 0

    def init(self, cwd: str, prompt: str) -> None:
        """Print the event that begins a run."""
        self._unread += len(prompt)
        tools = [] if self.arguments.without_tools else list(TOOLS)
        self._emit(
            {
                "type": "system",
                "subtype": "init",
                "cwd": cwd,
                "tools": [*tools, "StructuredOutput"] if self.arguments.schema else tools,
                "mcp_servers": [],
                "model": self.model,
                "permissionMode": self.arguments.permission_mode,
                "apiKeySource": "none",
                "claude_code_version": f"scripted-{VERSION}",
            }
        )

    def repeat(self, message: dict[str, Any]) -> None:
        """Print a message from stdin again, as claude does at the beginning of a turn."""
        said = {"type": "user", "message": message.get("message"), "parent_tool_use_id": None, "isReplay": True}
        self._emit({**said, "uuid": message.get("uuid") or new_id()})

    def say(self, text: str) -> None:
        """Print a text as a message of the model."""
        self.message({"type": "text", "text": text})

    def call(self, tool: str, **given: object) -> str:
        """Print a tool call as a message of the model, and return the call's id."""
        call = f"toolu_{os.urandom(10).hex()}"
        self.message({"type": "tool_use", "id": call, "name": tool, "input": given})
        return call

    def print_result(self, call: str, text: str, result: object, *, has_failed: bool = False) -> None:
        """Print the result of a tool call: the text for the model, and the CLI's own record."""
        self._unread += len(text)
        block = {"tool_use_id": call, "type": "tool_result", "content": text, "is_error": has_failed}
        message = {"role": "user", "content": [block]}
        self._emit({"type": "user", "message": message, "parent_tool_use_id": None, "tool_use_result": result})

    def nudge(self) -> None:
        """Print claude's message to a model that has not used the tool for structured output."""
        text = "[structured-output-enforce] You MUST call the StructuredOutput tool to complete this request."
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        self._emit({"type": "user", "message": message, "parent_tool_use_id": None, "isSynthetic": True})

    def tick(self) -> None:
        """Print a status event, which shows that the agent lives, and counts as no turn."""
        self._emit({"type": "system", "subtype": "status", "status": "requesting"})

    def answer(self, text: str, structured: dict[str, Any] | None) -> None:
        """Print the result event of a run with an answer."""
        found = {} if structured is None else {"structured_output": structured}
        self.result("success", {"is_error": False, "result": text, "terminal_reason": "completed", **found})

    def print_failure(self, subtype: str, reason: str, **facts: object) -> None:
        """Print the result event of a failed run, with `errors` and without `result`."""
        self.result(subtype, {"is_error": True, "errors": [reason], **facts})

    @property
    def cost_usd(self) -> float:
        """The cost of the run so far, which is always 0."""
        return 0.0

    def message(self, block: dict[str, Any]) -> None:
        """Print a message of the model and count the turn; raise `TooManyTurnsError` at the limit of turns."""
        if self.arguments.max_turns is not None and self.turns >= self.arguments.max_turns:
            raise TooManyTurnsError
        self.turns += 1
        usage = self.use(len(json.dumps(block)))
        for key, count in usage.items():
            self.usage[key] += count
        # As claude does: a message's own event names only the first of its output tokens.
        self.assistant(block, model=self.model, usage={**usage, "output_tokens": min(usage["output_tokens"], 1)})

    def use(self, characters: int) -> dict[str, int]:
        """Return the usage of a message of this length; earlier messages count as read from the cache."""
        new, output = self._unread // _CHARACTERS_PER_TOKEN, characters // _CHARACTERS_PER_TOKEN + 1
        usage = {
            "input_tokens": 3,
            "cache_creation_input_tokens": new,
            "cache_read_input_tokens": self.session.context_tokens,
            "output_tokens": output,
        }
        self.session.context_tokens += new + output
        self._unread = 0
        return usage

    def assistant(self, block: dict[str, Any], model: str, usage: dict[str, int], **facts: object) -> None:
        """Print the event of a model's message with this block, model and usage."""
        message = {
            "id": f"msg_{os.urandom(10).hex()}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [block],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**usage, "service_tier": "standard"},
        }
        self._emit({"type": "assistant", "message": message, "parent_tool_use_id": None, **facts})

    def result(self, subtype: str, facts: dict[str, Any]) -> None:
        """Print the result event of the run, and save the session."""
        milliseconds = round((time.monotonic() - self._started) * 1000)
        since = self._since_last_result()
        self.session.save()
        # "type" is not the first key, as in claude's own results.
        self._emit(
            {
                "duration_api_ms": milliseconds,
                "stop_reason": "end_turn" if self.turns else None,
                "total_cost_usd": self.session.cost_usd,
                "usage": {**self.usage, "service_tier": "standard"},
                "modelUsage": self.session.model_usage,
                "permission_denials": [],
                "num_turns": self.turns,
                "subtype": subtype,
                **facts,
                "type": "result",
                "duration_ms": milliseconds,
                "result_index": 0,
                **({"model_usage_since_last_result": since} if self.turns else {}),
            }
        )

    def _since_last_result(self) -> dict[str, Any]:
        """Add the cost and usage since the last result to the session, and return them by model."""
        own = {
            "inputTokens": self.usage["input_tokens"],
            "outputTokens": self.usage["output_tokens"],
            "cacheReadInputTokens": self.usage["cache_read_input_tokens"],
            "cacheCreationInputTokens": self.usage["cache_creation_input_tokens"],
            "costUSD": self.cost_usd,
        }
        before = self.session.model_usage.get(self.model, {})
        self.session.model_usage[self.model] = {key: value + before.get(key, 0) for key, value in own.items()}
        self.session.cost_usd += own["costUSD"]
        return {self.model: own}

    def _emit(self, event: dict[str, Any]) -> None:
        event["session_id"] = self.session.id
        event.setdefault("uuid", new_id())
        line = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        self._out.write(f"{line}\n".encode(errors="replace"))
        self._out.flush()
