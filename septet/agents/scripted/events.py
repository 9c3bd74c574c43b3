"""claude's stream: the events of one run, and what they add up to."""

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
TOOLS = ("Bash", "Edit", "Read", "Write")
_CHARACTERS_PER_TOKEN = 4


class TooManyTurnsError(Exception):
    """`--max-turns` is reached."""


class BudgetReachedError(Exception):
    """`--max-budget-usd` is reached."""


class Stream:
    """What the run prints. A turn is one message of the model: a text, or one call of a tool."""

    def __init__(
        self, out: BinaryIO | RawIOBase, arguments: Arguments, scenario: Scenario, session: ScriptedSession
    ) -> None:
        """Begin with nothing printed."""
        self._out = out
        self._arguments = arguments
        self._scenario = scenario
        self._session = session
        self._model = arguments.model or scenario.model
        self._usage = dict.fromkeys(
            ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"), 0
        )
        self._started = time.monotonic()
        self._unread = 0
        self.turns = 0

    def init(self, cwd: str, prompt: str) -> None:
        """Print the event that begins a run."""
        self._unread += len(prompt)
        tools = [] if self._arguments.without_tools else list(TOOLS)
        self._emit(
            {
                "type": "system",
                "subtype": "init",
                "cwd": cwd,
                "tools": [*tools, "StructuredOutput"] if self._arguments.schema else tools,
                "mcp_servers": [],
                "model": self._model,
                "permissionMode": self._arguments.permission_mode,
                "apiKeySource": "none",
                "claude_code_version": f"scripted-{VERSION}",
            }
        )

    def repeat(self, message: dict[str, Any]) -> None:
        """Print a message of stdin where it is taken up."""
        said = {"type": "user", "message": message.get("message"), "parent_tool_use_id": None, "isReplay": True}
        self._emit({**said, "uuid": message.get("uuid") or new_id()})

    def say(self, text: str) -> None:
        """Let the model say something."""
        self._message({"type": "text", "text": text})

    def call(self, tool: str, **given: object) -> str:
        """Let the model call a tool and return the call's id."""
        call = f"toolu_{os.urandom(10).hex()}"
        self._message({"type": "tool_use", "id": call, "name": tool, "input": given})
        return call

    def print_result(self, call: str, text: str, result: object, *, has_failed: bool = False) -> None:
        """Print what a tool gave back: the text for the model, and the CLI's own record."""
        self._unread += len(text)
        block = {"tool_use_id": call, "type": "tool_result", "content": text, "is_error": has_failed}
        message = {"role": "user", "content": [block]}
        self._emit({"type": "user", "message": message, "parent_tool_use_id": None, "tool_use_result": result})

    def nudge(self) -> None:
        """Print claude's message to a model that did not answer with the tool for JSON."""
        text = "[structured-output-enforce] You MUST call the StructuredOutput tool to complete this request."
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        self._emit({"type": "user", "message": message, "parent_tool_use_id": None, "isSynthetic": True})

    def tick(self) -> None:
        """Print a sign of life that is no turn."""
        self._emit({"type": "system", "subtype": "status", "status": "requesting"})

    def api_error(self, status: int) -> None:
        """Print how claude ends when the model API refuses: `success`, and yet an error."""
        text = f"API Error: {status} the scenario lets the model API refuse"
        block = {"type": "text", "text": text}
        self._assistant(block, model="<synthetic>", usage=dict.fromkeys(self._usage, 0), api_error_status=status)
        facts = {"is_error": True, "result": text, "api_error_status": status, "terminal_reason": "api_error"}
        self._result("success", {**facts, "num_turns": 1, "stop_reason": "stop_sequence"})

    def answer(self, text: str, structured: dict[str, Any] | None) -> None:
        """Print the result of a run that ends by itself."""
        found = {} if structured is None else {"structured_output": structured}
        self._result("success", {"is_error": False, "result": text, "terminal_reason": "completed", **found})

    def print_failure(self, subtype: str, reason: str, **facts: object) -> None:
        """Print the result of a run that was ended: it has `errors` and no `result`."""
        self._result(subtype, {"is_error": True, "errors": [reason], **facts})

    def _message(self, block: dict[str, Any]) -> None:
        if self._arguments.max_turns is not None and self.turns >= self._arguments.max_turns:
            raise TooManyTurnsError
        budget = self._arguments.max_budget_usd
        if budget is not None and self.turns and self.turns * self._scenario.cost_usd >= budget:
            raise BudgetReachedError
        self.turns += 1
        usage = self._use(len(json.dumps(block)))
        for key, count in usage.items():
            self._usage[key] += count
        # As claude does: a message's own event names only the first of its output tokens.
        self._assistant(block, model=self._model, usage={**usage, "output_tokens": min(usage["output_tokens"], 1)})

    def _use(self, characters: int) -> dict[str, int]:
        """Return the usage of a message of so many characters: what was said before comes from the cache."""
        new, output = self._unread // _CHARACTERS_PER_TOKEN, characters // _CHARACTERS_PER_TOKEN + 1
        usage = {
            "input_tokens": 3,
            "cache_creation_input_tokens": new,
            "cache_read_input_tokens": self._session.context_tokens,
            "output_tokens": output,
            **self._scenario.tokens,
        }
        self._session.context_tokens += new + output
        self._unread = 0
        return usage

    def _assistant(self, block: dict[str, Any], model: str, usage: dict[str, int], **facts: object) -> None:
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

    def _result(self, subtype: str, facts: dict[str, Any]) -> None:
        milliseconds = round((time.monotonic() - self._started) * 1000)
        since = self._since_last_result()
        self._session.save()
        # "type" is not the first key, as in claude's own results.
        self._emit(
            {
                "duration_api_ms": milliseconds,
                "stop_reason": "end_turn" if self.turns else None,
                "total_cost_usd": self._session.cost_usd,
                "usage": {**self._usage, "service_tier": "standard"},
                "modelUsage": self._session.model_usage,
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
        """Add this run to the session, whose cost and usage by model grow from run to run; return this run's."""
        own = {
            "inputTokens": self._usage["input_tokens"],
            "outputTokens": self._usage["output_tokens"],
            "cacheReadInputTokens": self._usage["cache_read_input_tokens"],
            "cacheCreationInputTokens": self._usage["cache_creation_input_tokens"],
            "costUSD": self.turns * self._scenario.cost_usd,
        }
        before = self._session.model_usage.get(self._model, {})
        self._session.model_usage[self._model] = {key: value + before.get(key, 0) for key, value in own.items()}
        self._session.cost_usd += own["costUSD"]
        return {self._model: own}

    def _emit(self, event: dict[str, Any]) -> None:
        """Print one event; in the other formats only the result is printed."""
        event["session_id"] = self._session.id
        event.setdefault("uuid", new_id())
        shown = self._arguments.output_format
        if shown == "text" and event["type"] == "result":
            self._print(str(event.get("result", "")))
        elif shown == "stream-json" or (shown == "json" and event["type"] == "result"):
            self._print(json.dumps(event, ensure_ascii=False, separators=(",", ":")))

    def _print(self, line: str) -> None:
        self._out.write(f"{line}\n".encode(errors="replace"))
        self._out.flush()
