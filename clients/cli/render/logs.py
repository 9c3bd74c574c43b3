"""Print the log entries and the network requests of agents, each run below a heading."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, Final

from rich.text import Text

from clients.cli.terminal.console import console
from clients.disk.runs import runs_of
from clients.patches import difference
from clients.tool_calls import only_confirms, without_workspace
from septet.contracts.host_files import AgentRun, LogEntry, NetworkRequest
from septet.contracts.replies import NetworkReply
from septet.state import StateDir
from septet.system.masking import printable
from septet.system.text import cut

_PATHS: Final = ("file_path", "path", "filePath", "absolute_path", "notebook_path")
_OLD, _NEW = ("old_string", "oldString"), ("new_string", "newString")
_NO_TIME: Final = " " * len("00:00:00  ")


@dataclass(slots=True)
class LogText:
    """Turns the log entries of a work order into lines of text."""

    state: StateDir
    order_id: str
    structured: bool = False
    """Whether to include agents' structured answers, which are for programs."""
    _workspace: re.Pattern[str] = field(init=False)
    """The pattern of a workspace's path, which lines omit."""
    _run: str = ""
    _said: str = ""
    """The agent's last message; most CLIs repeat it as the run's result."""
    _runs: dict[str, AgentRun] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Compile the pattern of the workspace's paths."""
        self._workspace = re.compile(rf"{re.escape(str(self.state.workspaces))}/[^/\s]+/")

    def lines(self, entry: LogEntry) -> Iterator[str]:
        """Yield the lines of an entry, below a heading if the entry begins another run."""
        if entry.run != self._run:
            heading = "" if not self._run else "\n"
            self._run, self._said = entry.run, ""
            yield f"{heading}{self._time_of(entry.run)}{entry.step or entry.run} · {entry.agent}  ({entry.run})"
        text = entry.text.strip()
        if entry.kind == "result" and text == self._said:
            return
        self._said = text if entry.kind == "text" else self._said
        if not self._said and not self.structured and is_structured(entry) and (answer := _answer_of(entry)):
            self._said = text
            entry = entry.model_copy(update={"kind": "text", "text": answer, "tool": ""})
        if only_confirms(entry):
            return
        before = f"{datetime.fromisoformat(entry.time).astimezone():%H:%M:%S}  " if entry.time else _NO_TIME
        for line in _lines(entry, structured=self.structured):
            yield before + printable(self._workspace.sub("", line))
            before = _NO_TIME

    def _time_of(self, run: str) -> str:
        if run not in self._runs:
            self._runs = {each.run: each for each in runs_of(self.state, self.order_id)}
        started = self._runs[run].started_at if run in self._runs else None
        return f"{datetime.fromisoformat(started).astimezone():%Y-%m-%d %H:%M:%S}  " if started else ""


def _lines(entry: LogEntry, *, structured: bool) -> Iterator[str]:
    if not structured and is_structured(entry):
        return
    match entry.kind:
        case "tool_call":
            yield from call_lines(entry.tool, entry.text)
        case "tool_result":
            yield from _some(entry.text.rstrip().split("\n"), 12, "  ")
        case "error":
            yield from (f"! {line}" for line in entry.text.rstrip().split("\n"))
        case _:
            yield from entry.text.rstrip().split("\n")


def call_lines(tool: str, text: str) -> Iterator[str]:
    """Yield the lines of a tool call: a command, a diff, or the tool with its file or its arguments."""
    arguments = _object(text)
    command = arguments.get("command", arguments.get("cmd"))
    path = next((str(arguments[name]) for name in _PATHS if arguments.get(name)), "")
    old, new = (next((arguments[name] for name in names if name in arguments), None) for names in (_OLD, _NEW))
    if isinstance(command, str | list):
        yield f"$ {command if isinstance(command, str) else ' '.join(map(str, command))}"
    elif path and isinstance(old, str) and isinstance(new, str):
        yield f"{tool} {path}"
        changed = [line.text for line in difference(old, new) if line.kind != "same"]
        yield from _some([f"{line[:1]} {line[1:]}" for line in changed], 20, "  ")
    elif path and isinstance(content := arguments.get("content"), str):
        count = len(content.rstrip("\n").split("\n"))
        yield f"{tool} {path} ({count} line{'s' * (count != 1)})"
    elif path:
        yield f"{tool} {path}"
    elif arguments:
        texts = {name: _whole(value) for name, value in arguments.items()}
        yield f"{tool} {', '.join(f'{name}={cut(text, 80)}' for name, text in texts.items())}"
    else:
        yield f"{tool} {text}".rstrip()


def headline(entry: LogEntry) -> str:
    """Return the first line of an entry's text."""
    lines = _lines(entry, structured=True)
    return without_workspace(next((line.strip() for line in lines if line.strip()), ""))


def is_structured(entry: LogEntry) -> bool:
    """Return whether an entry is a structured answer, whose content the step's result repeats."""
    if entry.tool in {"StructuredOutput", "structured_output"}:
        return True
    return entry.kind == "result" and bool(_object(entry.text))


def _answer_of(entry: LogEntry) -> str:
    """Return a structured answer as lines of `name: value`; empty for a tool's result."""
    values = _object(entry.text) if entry.kind != "tool_result" else {}
    return "\n".join(f"{name}: {_whole(value)}" for name, value in values.items())


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _some(lines: list[str], most: int, indent: str) -> Iterator[str]:
    yield from (indent + line for line in lines[:most])
    if more := max(len(lines) - most, 0):
        yield f"{indent}… {more} more line{'s' * (more != 1)}"


def _whole(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_MOST_NAMED: Final = 5


def show_refusals(order_id: str, hosts: Sequence[str]) -> None:
    """Print the refused network addresses, if any, and the command that shows all requests."""
    if not hosts:
        return
    others = len(hosts) - _MOST_NAMED
    names = ", ".join(hosts[:_MOST_NAMED]) + (f" and {others} more" if others > 0 else "")
    line = Text(printable(f"refused hosts {names}  (septet logs {order_id} --network)"), style="yellow")
    console().print(line, soft_wrap=True)


def show_network(order_id: str, answer: NetworkReply) -> None:
    """Print the network requests of a work order, each run below a heading."""
    out = console()
    if not answer.requests:
        out.print(Text(f"No sandbox of {order_id} on this host made a network request."), soft_wrap=True)
    for number, (run, requests) in enumerate(groupby(answer.requests, lambda each: each.run)):
        out.print(Text(f"{chr(10) if number else ''}{run}", style="bold"), soft_wrap=True)
        for each in requests:
            out.print(Text(printable(f"  {_line(each)}"), style="" if each.allowed else "yellow"), soft_wrap=True)
    if answer.is_cut:
        out.print(Text("Refusals beyond the first lines of a log are counted."), soft_wrap=True)


def _line(request: NetworkRequest) -> str:
    verdict = "allowed" if request.allowed else "refused"
    host = f"{request.host}:{request.port}" if request.port else request.host
    asked = f"{host}  {request.request}" if request.request else host
    many = f"{request.count:,} times, " if request.count > 1 else ""
    told = (
        f"{request.sent_bytes:,} bytes sent, {request.received_bytes:,} received, {request.seconds:.1f} s"
        if request.allowed
        else request.why
    )
    return f"{_time(request.asked_at)}{verdict}  {asked}  {many}{told}{' (a check)' if request.of_check else ''}"


def _time(moment: str) -> str:
    try:
        return f"{datetime.fromisoformat(moment).astimezone():%H:%M:%S}  "
    except ValueError:
        return ""
