"""A model that answers on loopback; its answers follow from the conversation alone, so a resume fits in."""

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from fakes.git_http import body_of
from fakes.listening import QuietHandler, listening
from fakes.model_wires import RESULT, SCRIPT, Call, Event, Said, Wire, model_in, wire_of

_HEADING: Final = re.compile(r"^# (build_plan|[a-z_]+?)(?:_bug|_feature|_chore)?$", re.MULTILINE)
_FINALIZER: Final = re.compile(r"answer for the step `([a-z_]+)`")
_SHELLS: Final = ("Bash", "bash", "exec_command", "shell_command", "run_shell_command", "shell", SCRIPT)
_STRUCTURED: Final = "StructuredOutput"
_KEYS: Final = ("authorization", "x-api-key", "x-goog-api-key")
_HANG_SECONDS: Final = 300.0
_LIMITED_SECONDS: Final = 5 * 3600.0
_MESSAGES: Final = {401: "invalid x-api-key", 500: "Internal server error", 503: "overloaded", 529: "Overloaded"}


@dataclass(frozen=True)
class Part:
    """The model's part in one step: shell commands, and then its answer."""

    answer: dict[str, Any]
    commands: tuple[str, ...] = ()
    in_background: bool = False
    """Whether claude's shell runs the commands in the background while the model answers."""


@dataclass(frozen=True)
class Asked:
    step: str
    finalizing: bool
    results: int
    tools: list[str]
    heard: tuple[str, ...] = ()
    """The texts of users and tools in the conversation, oldest first."""
    prompt: str = ""
    model: str = ""


@dataclass
class Fault:
    """A fault of one step: a status, a stream that hangs, or an answer in prose, and how often."""

    step: str
    what: int | Literal["hang", "prose"]
    times: int = 1
    results: int = 0

    def meets(self, asked: Asked) -> bool:
        return (self.step, self.results) == (asked.step, asked.results) and not asked.finalizing


@dataclass
class Model:
    parts: dict[str, Part]
    faults: list[Fault] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    limited_key: str = ""
    first_token_seconds: float = 0.0
    """The seconds of silence before each answer."""
    gone: threading.Event = field(default_factory=threading.Event)
    """Set when the stub closes, so that no request hangs."""
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def fault(self, asked: Asked, body: dict[str, Any]) -> int | str | None:
        """Record a request, and return its fault; requests beside the work get no fault."""
        with self._guard:
            self.asked.append(asked)
            self.bodies.append(body)
            for fault in self.faults:
                if fault.times and asked.tools and fault.meets(asked):
                    fault.times -= 1
                    return fault.what
        return None

    def part(self, asked: Asked) -> Part | None:
        return self.parts.get(asked.step)

    def says(self, asked: Asked) -> Said:
        part = self.part(asked)
        if part is None:
            return Said("ok")
        if asked.results < len(part.commands) and not asked.finalizing:
            shell = next((name for name in _SHELLS if name in asked.tools), None)
            if shell is not None:
                background = {"run_in_background": True} if part.in_background else {}
                return Said(call=Call(shell, _arguments(shell, part.commands[asked.results]) | background))
        structured = asked.finalizing or asked.results == len(part.commands)
        if structured and _STRUCTURED in asked.tools:
            return Said(call=Call(_STRUCTURED, part.answer))
        return Said(json.dumps(part.answer))


def asked_in(wire: Wire, body: dict[str, Any]) -> Asked:
    step, finalizing, results, prompt = "", False, 0, ""
    heard = tuple(wire.heard(body))
    for words in heard:
        headings = _HEADING.findall(words)
        finalizer = _FINALIZER.search(words)
        if words == RESULT:
            results += 1
        elif finalizer is not None:
            step, finalizing = finalizer[1], True
        elif headings:
            step, finalizing, results, prompt = headings[0], False, 0, words
    return Asked(step, finalizing, results, wire.tools(body), heard, prompt)


def _arguments(shell: str, command: str) -> dict[str, Any]:
    if shell == "exec_command":
        return {"cmd": command}
    if shell == SCRIPT:
        return {"input": f"text(await tools.exec_command({json.dumps({'cmd': command})}))"}
    if shell == "shell":
        return {"command": ["bash", "-lc", command]}
    return {"command": command} if shell == "shell_command" else {"command": command, "description": "work"}


@contextmanager
def serving(model: Model) -> Iterator[str]:
    class Handler(_Handler):
        stub = model

    with listening(Handler, waits=False) as address:
        try:
            yield address
        finally:
            model.gone.set()


class _Handler(QuietHandler):
    stub: Model

    def handle_any(self) -> None:
        content, path = body_of(self), urlsplit(self.path).path
        body, wire = json.loads(content or b"{}"), wire_of(path)
        if self.command == "HEAD":
            self.answer(200, {"Content-Type": "application/json"})
        elif self.command == "GET":
            found = path.endswith("/models")
            self._send(200 if found else 404, {"object": "list", "data": [{"id": "stub", "object": "model"}]})
        elif wire is None:
            self._send(200, {"input_tokens": 10, "totalTokens": 10})
        else:
            self._answer(wire, path, body)

    def _answer(self, wire: Wire, path: str, body: dict[str, Any]) -> None:
        keys = {self.headers[name].removeprefix("Bearer ") for name in _KEYS if self.headers[name]}
        model, name = self.stub, model_in(path, body)
        asked = replace(asked_in(wire, body), model=name)
        model.keys |= keys
        if model.limited_key in keys:
            self._send(*wire.usage_limit(time.time() + _LIMITED_SECONDS))
            return
        fault = model.fault(asked, body)
        if isinstance(fault, int):
            self._send(fault, wire.error(fault, _MESSAGES[fault]))
            return
        model.gone.wait(model.first_token_seconds)
        said = Said("I think that it is done.") if fault == "prose" else model.says(asked)
        if body.get("stream") or "streamGenerate" in path:
            self._stream(wire.stream(said, name), hang=fault == "hang")
        else:
            self._send(200, wire.whole(said, name))

    def _send(self, status: int, answer: dict[str, Any], headers: Mapping[str, str] | None = None) -> None:
        self.answer(status, {**(headers or {}), "Content-Type": "application/json"}, json.dumps(answer).encode())

    def _stream(self, events: list[Event], *, hang: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        with suppress(OSError):
            for event, data in events[:1] if hang else events:
                named = f"event: {event}\n" if event else ""
                text = data if isinstance(data, str) else json.dumps(data)
                self.wfile.write(f"{named}data: {text}\n\n".encode())
            self.wfile.flush()
            if hang:
                self.stub.gone.wait(_HANG_SECONDS)
