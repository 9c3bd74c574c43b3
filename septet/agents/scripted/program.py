"""The program `septet-scripted-agent`: it reads the command line, and runs or refuses as claude does."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from septet.agents.scripted.arguments import RefusalError, parse
from septet.agents.scripted.events import VERSION, Stream
from septet.agents.scripted.run import ScriptedRun
from septet.agents.scripted.scenario import Scenario, load_scenario
from septet.agents.scripted.sessions import Memory, ScriptedSession, UnknownSessionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO, ClassVar, TextIO

    from septet.agents.scripted.arguments import Arguments


class Program:
    """One process of the agent; a subclass for tests replaces the types of scenario, stream and run."""

    scenario_type: ClassVar[type[Scenario]] = Scenario
    stream_type: ClassVar[type[Stream]] = Stream
    run_type: ClassVar[type[ScriptedRun]] = ScriptedRun

    def __init__(self, env: Mapping[str, str], stdin: BinaryIO, stdout: BinaryIO, stderr: TextIO) -> None:
        """Take the environment and the standard streams of the process."""
        self._env = env
        self._stdin = stdin
        self._stdout = stdout
        self._stderr = stderr

    def start(self, argv: list[str]) -> int:
        """Run the program with these arguments, and return the exit code."""
        try:
            arguments = parse(argv)
            if arguments.version:
                self._stdout.write(f"{VERSION} (Septet scripted agent)\n".encode())
                return 0
            scenario = load_scenario(self._env.get("SEPTET_SCRIPTED_SCENARIO", ""), self.scenario_type)
            prompt = "" if arguments.serves else self._read_prompt()
            own = self._env.get("SEPTET_SCRIPTED_HOME")
            memory = Memory(Path(own) if own else Path(self._env.get("HOME", "")) / ".septet-scripted")
            begun = arguments.resume
            try:
                session = memory.begin(arguments.session_id) if begun is None else memory.resume(begun)
            except UnknownSessionError:
                return self._no_conversation(arguments, scenario)
            if not arguments.serves:
                stream = self.stream_type(self._stdout, arguments, scenario, session)
                return self.run_type(stream, scenario, memory, prompt).play()
            return self._serve(arguments, scenario, memory, session)
        except RefusalError as refusal:
            self._stderr.write(f"{refusal}\n")
            return 1

    def _serve(self, arguments: Arguments, scenario: Scenario, memory: Memory, session: ScriptedSession) -> int:
        """Run a turn for each message on stdin, in one session; return the last turn's exit code."""
        code = 0
        for line in iter(self._stdin.readline, b""):
            message = read_message(line)
            if message is not None:
                stream = self.stream_type(self._stdout, arguments, scenario, session)
                run = self.run_type(stream, scenario, memory, text_of(message))
                code = run.play(message if arguments.replays else None)
        return code

    def _read_prompt(self) -> str:
        prompt = self._stdin.read().decode(errors="replace")
        if not prompt.strip():
            raise RefusalError("Error: Input must be provided through stdin")
        return prompt

    def _no_conversation(self, arguments: Arguments, scenario: Scenario) -> int:
        reason = f"No conversation found with session ID: {arguments.resume}"
        self._stderr.write(f"{reason}\n")
        stream = self.stream_type(
            self._stdout, arguments, scenario, ScriptedSession(None, {"id": arguments.resume})
        )
        stream.print_failure("error_during_execution", reason)
        return 1


def main() -> int:
    """Run the program and return its exit code."""
    return Program(os.environ, sys.stdin.buffer, sys.stdout.buffer, sys.stderr).start(sys.argv[1:])


def read_message(line: bytes) -> dict[str, Any] | None:
    """Return the user's message in a line of stdin; `None` for a blank line or another message.

    Raises:
        RefusalError: The line is no JSON object.
    """
    if not line.strip():
        return None
    try:
        message = json.loads(line)
    except ValueError as error:
        raise RefusalError(f"Error parsing streaming input line: {error}") from error
    if not isinstance(message, dict):
        raise RefusalError("Error: Expected message to be an object.")
    return message if message.get("type") == "user" else None


def text_of(message: dict[str, Any]) -> str:
    """Return the text of a message; the texts of several blocks become lines."""
    content = (message.get("message") or {}).get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content)


if __name__ == "__main__":
    sys.exit(main())
