"""The program `septet-scripted-agent`: from the command line to a run, or to a refusal as claude's."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from septet.agents.scripted.arguments import Arguments, Refusal, parse
from septet.agents.scripted.events import VERSION, Stream
from septet.agents.scripted.messages import read_message, text_of
from septet.agents.scripted.run import ScriptedRun
from septet.agents.scripted.scenario import Scenario, load_scenario
from septet.agents.scripted.sessions import Memory, ScriptedSession, UnknownSessionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO, TextIO


def main() -> int:
    """Run the program and return its exit code."""
    return start(sys.argv[1:], os.environ, sys.stdin.buffer, sys.stdout.buffer, sys.stderr)


def start(argv: list[str], env: Mapping[str, str], stdin: BinaryIO, stdout: BinaryIO, stderr: TextIO) -> int:
    """Do what a command line asks for and return the exit code.

    Args:
        argv: The command line without its program.
        env: `SEPTET_SCRIPTED_HOME`, `HOME` and `SEPTET_SCRIPTED_SCENARIO` are read.
        stdin: The prompt, or with `--input-format stream-json` one after the other.
        stdout: Where the stream goes.
        stderr: Where it says why it could not begin.
    """
    try:
        arguments = parse(argv)
        if arguments.version:
            stdout.write(f"{VERSION} (Septet scripted agent)\n".encode())
            return 0
        scenario = load_scenario(arguments.scenario or env.get("SEPTET_SCRIPTED_SCENARIO", ""))
        prompt = "" if arguments.input_format == "stream-json" else _prompt(arguments, stdin)
        memory = Memory(_home(env))
        try:
            session = _session(memory, arguments)
        except UnknownSessionError:
            return _no_conversation(arguments, scenario, stdout, stderr)
    except Refusal as refusal:
        stderr.write(f"{refusal}\n")
        return 1
    if arguments.input_format == "stream-json":
        return _serve(arguments, scenario, memory, session, (stdin, stdout, stderr))
    stream = Stream(stdout, arguments, scenario, session)
    return ScriptedRun(arguments, scenario, memory, session, prompt, stream).play()


def _serve(
    arguments: Arguments,
    scenario: Scenario,
    memory: Memory,
    session: ScriptedSession,
    files: tuple[BinaryIO, BinaryIO, TextIO],
) -> int:
    """Carry out a turn for each message on stdin, in one session, and return the last one's exit code."""
    stdin, stdout, stderr = files
    code = 0
    for line in iter(stdin.readline, b""):
        try:
            message = read_message(line)
        except Refusal as refusal:
            stderr.write(f"{refusal}\n")
            return 1
        if message is not None:
            stream = Stream(stdout, arguments, scenario, session)
            run = ScriptedRun(arguments, scenario, memory, session, text_of(message), stream)
            code = run.play(message if arguments.replays else None)
    return code


def _home(env: Mapping[str, str]) -> Path:
    own = env.get("SEPTET_SCRIPTED_HOME")
    return Path(own) if own else Path(env.get("HOME", "")) / ".septet-scripted"


def _prompt(arguments: Arguments, stdin: BinaryIO) -> str:
    given = "" if stdin.isatty() else stdin.read().decode(errors="replace")
    prompt = "\n".join(part for part in (arguments.prompt, given) if part)
    if not prompt.strip():
        raise Refusal(
            "Error: Input must be provided either through stdin or as a prompt argument when using --print"
        )
    return prompt


def _session(memory: Memory, arguments: Arguments) -> ScriptedSession:
    if arguments.resume is None:
        return memory.begin(arguments.session_id)
    session = memory.resume(arguments.resume)
    return memory.fork(session) if arguments.fork else session


def _no_conversation(arguments: Arguments, scenario: Scenario, stdout: BinaryIO, stderr: TextIO) -> int:
    reason = f"No conversation found with session ID: {arguments.resume}"
    stderr.write(f"{reason}\n")
    stream = Stream(stdout, arguments, scenario, ScriptedSession(None, {"id": arguments.resume}))
    stream.print_failure("error_during_execution", reason)
    return 1


if __name__ == "__main__":
    sys.exit(main())
