"""A client that writes the protocol's lines itself, to a real `septet mcp` that it starts."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from fakes.septet_command import PROGRAMS, WITHIN_SECONDS, Septet
from fakes.waiting import until

TASKS: Final = "io.modelcontextprotocol/tasks"
VERSION: Final = "2026-07-28"
WITH_TASKS: Final[Mapping[str, Any]] = {"extensions": {TASKS: {}}, "elicitation": {"form": {}}}


@dataclass
class Lines:
    """One `septet mcp` and its answers; each request names the client's `capabilities` and `version`."""

    process: "subprocess.Popen[str]"
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    version: str = VERSION
    asked: int = 0

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request unchanged, and return the whole line of its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.asked += 1
        request = {"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert answer["id"] == self.asked
        return answer

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        answer = self.send(method, **params, _meta=self.meta)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def refused(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request of the revision 2026-07-28 that is refused, and return its error."""
        error: dict[str, Any] = self.send(method, **params, _meta=self.meta)["error"]
        return error

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", name=tool, arguments=arguments)

    def task(self, order: str) -> dict[str, Any]:
        return self.ask("tasks/get", taskId=order)

    def task_in(self, order: str, *statuses: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            task = self.task(order)
            return task if task["status"] in statuses else None

        return until(look)

    @property
    def meta(self) -> dict[str, Any]:
        return {
            "io.modelcontextprotocol/protocolVersion": self.version,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "a-test", "version": "1"},
        }


@contextmanager
def mcp_lines(septet: Septet, capabilities: Mapping[str, Any] | None = None) -> Iterator[Lines]:
    with subprocess.Popen(
        [PROGRAMS / "septet", "mcp"],
        env=septet.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        yield Lines(process, capabilities or {})
        process.communicate(timeout=WITHIN_SECONDS)
