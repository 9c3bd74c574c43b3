"""The agent of the chaos program: claude's command line and stream, real edits, a tool, and its own journal.

The agent works in units, and remembers the finished units in its session. A new session begins with the first
unit; a resumed agent looks for existing work and continues. The agent records its acts outside its tree, in the
folder that `SEPTET_SCRIPTED_CHAOS` names. A lock in that folder, which the agent's tools also hold, shows another
writer in its tree. `SEPTET_SCRIPTED_STEP_SECONDS` is the duration of a step.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # started without site-packages, which makes the start quick

from bench.chaos.answers import UNITS, answer_of, order_of, plan_path
from septet.agents.scripted.arguments import Arguments, parse
from septet.agents.scripted.events import Stream
from septet.agents.scripted.program import read_message, text_of
from septet.agents.scripted.scenario import Scenario
from septet.agents.scripted.sessions import Memory, ScriptedSession, UnknownSessionError
from septet.agents.scripted.task import PromptTask, step_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BEAT_SECONDS = 0.1
TOOL_TRIES = 5
TERMINATED = 143
NO_WAY_OUT = 3
WAY_OUT_SECONDS = 20.0


class Journal:
    """The events of one turn: one line for each event, written at once."""

    def __init__(self, folder: Path, order: str, tree: str) -> None:
        """Create the turn's file, and try the lock of the tree."""
        for place in (folder / order, folder / tree):
            place.mkdir(parents=True, exist_ok=True)
        name = folder / order / f"{time.time_ns()}-{os.getpid()}.jsonl"
        self._file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._lock = os.open(folder / tree / "tree.lock", os.O_RDWR | os.O_CREAT, 0o600)
        self.alone = False
        self.look_for_another()

    def note(self, event: str, **facts: object) -> None:
        """Record one event."""
        os.write(self._file, json.dumps({"at": time.time(), "event": event, **facts}).encode() + b"\n")

    def look_for_another(self) -> None:
        """Take the tree's lock; while another agent or its tool holds the lock, two processes write."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.alone = True
        except BlockingIOError:
            self.alone = False

    def close(self) -> None:
        """Record the end of the turn, and release the tree."""
        self.note("end")
        os.close(self._file)
        os.close(self._lock)


class Hands:
    """The agent's writes into the tree."""

    def __init__(self, journal: Journal, *, looks_first: bool) -> None:
        """Work in the current folder; with `looks_first` leave files of an earlier process alone."""
        self._journal = journal
        self._looks_first = looks_first

    def fresh(self, stem: str) -> str:
        """Return a path to write to; for a resumed agent a path without a file."""
        number = 1
        while self._looks_first and Path(f"{stem}-{number}.txt").exists():
            number += 1
        return f"{stem}-{number}.txt"

    def write(self, path: str, text: str) -> None:
        """Write a file whole or not at all, and record it before and after: the agent may die in between."""
        content = text.encode()
        facts = {
            "path": path,
            "sha256": hashlib.sha256(content).hexdigest(),
            "blob": hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest(),
            "size": len(content),
        }
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        new = Path(f".git/chaos-{os.getpid()}")
        new.write_bytes(content)
        self._journal.note("writes", **facts)
        new.replace(path)
        self._journal.note("wrote", **facts)

    def tool(self, path: str, seconds: float) -> bool:
        """Let a process in its own session work and then write; return whether it reached its end."""
        child = os.fork()
        if child == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            time.sleep(seconds)
            if path:
                self.write(path, f"A tool wrote this: {os.urandom(64).hex()}\n" * 4)
            os._exit(0)
        self._journal.note("tool", **identity(child))
        return os.waitpid(child, 0)[1] == 0


def ask_way_out() -> None:
    """Send a request to the sandbox's proxy, if it has one, until the proxy answers: it may be killed.

    Raises:
        SystemExit: The proxy does not answer.
    """
    name, _, port = os.environ.get("http_proxy", "").removeprefix("http://").partition(":")
    deadline = time.monotonic() + WAY_OUT_SECONDS
    while port and time.monotonic() < deadline:
        try:
            with socket.create_connection((name, int(port)), timeout=WAY_OUT_SECONDS) as way:
                way.sendall(b"GET / HTTP/1.1\r\n\r\n")
                if way.recv(100).startswith(b"HTTP/1.1 400"):  # the answer to an empty request
                    return
        except OSError:
            pass
        time.sleep(BEAT_SECONDS)
    if port:
        raise SystemExit(NO_WAY_OUT)


class Work:
    """The work of one turn."""

    def __init__(self, journal: Journal, hands: Hands, stream: Stream, step: str, order: str) -> None:
        """Take the parts of the turn without starting it."""
        self._journal, self._hands, self._stream, self._step = journal, hands, stream, step
        self._order = order

    def unit(self, number: int, seconds: float) -> None:
        """Do one unit: think, edit, let a tool work, edit again."""
        begin = time.monotonic()
        self._think(seconds / 3)
        if self._step == "build_plan":
            self._plan(number)
        elif self._step == "implement_plan":
            self._edit(number, seconds / 3)
        elif number == UNITS // 2:
            self._use_tool("", seconds / 3)
        ask_way_out()
        self._think(max(seconds - (time.monotonic() - begin), 0))

    def _plan(self, number: int) -> None:
        if number == UNITS:
            self._hands.write(plan_path(self._order), f"# Chore: {self._order}\n\nWrite the parts.\n")
        else:
            self._hands.write(self._hands.fresh(f"specs/{self._order}-note-{number}"), noise())

    def _edit(self, number: int, seconds: float) -> None:
        path = self._hands.fresh(f"work/{self._order}/part-{number}")
        call = self._stream.call("Write", file_path=path)
        self._hands.write(path, f"draft {noise()}")
        self._stream.print_result(call, "written", {"type": "create"})
        if number % 2 == 0:
            self._use_tool(self._hands.fresh(f"work/{self._order}/tool-{number}"), seconds)
        else:
            self._think(seconds)
        self._hands.write(path, f"final {noise()}")

    def _use_tool(self, path: str, seconds: float) -> None:
        for _ in range(TOOL_TRIES):
            call = self._stream.call("Bash", command="make work")
            done = self._hands.tool(path, seconds)
            self._stream.print_result(call, "done" if done else "killed", {"stdout": ""}, has_failed=not done)
            if done:
                return

    def _think(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, BEAT_SECONDS))
            self._stream.tick()
            self._journal.note("beat")
            if not self._journal.alone:
                self._journal.look_for_another()


def noise() -> str:
    """Return a new random text."""
    return f"{os.urandom(64).hex()}\n" * 8


def identity(pid: int) -> dict[str, object]:
    """Return a process's number, its start in the kernel's ticks, and its pid namespace."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    namespace = str(Path(f"/proc/{pid}/ns/pid").readlink())
    return {"pid": pid, "born": int(stat.rpartition(") ")[2].split(" ")[19]), "namespace": namespace}


class Agent:
    """One process with one session."""

    def __init__(self, arguments: Arguments, memory: Memory, session: ScriptedSession) -> None:
        """Begin without a turn."""
        self._arguments, self._memory, self._session = arguments, memory, session

    def turn(self, prompt: str, message: dict[str, Any] | None = None) -> None:
        """Do the prompt's step; a prompt without a step continues the previous step."""
        arguments, session = self._arguments, self._session
        step = "" if arguments.without_tools else step_of(prompt, None if session.prompt else arguments.schema)
        if step or not session.prompt:
            session.step, session.prompt = step, prompt
        session.save()
        task = PromptTask(session.prompt, Path.cwd())
        order = order_of(session.prompt, Path.cwd())
        stream = Stream(sys.stdout.buffer, arguments, Scenario("chaos", {}), session)
        stream.init(str(Path.cwd()), prompt)
        if message is not None:
            stream.repeat(message)
        if not arguments.without_tools:
            self._play(stream, order)
        answer = answer_of(session.step, task, order)
        if arguments.schema:
            stream.call("StructuredOutput", **answer)
        else:
            stream.say(json.dumps(answer))
        stream.answer(json.dumps(answer), answer if arguments.schema else None)

    def _play(self, stream: Stream, order: str) -> None:
        """Do the units of a step that this session has not done yet."""
        memory, session = self._memory, self._session
        resumed = memory.count(session.id, f"{order}-{session.step}-start") > 1
        journal = Journal(Path(os.environ["SEPTET_SCRIPTED_CHAOS"]), order, Path.cwd().name)
        journal.note(
            "start",
            **identity(os.getpid()),
            step=session.step,
            tree=Path.cwd().name,
            resumed=resumed,
            run=os.environ.get("SEPTET_RUN", ""),
            second=not journal.alone,
        )
        work = Work(journal, Hands(journal, looks_first=resumed), stream, session.step, order)
        seconds = float(os.environ["SEPTET_SCRIPTED_STEP_SECONDS"]) / UNITS
        done = f"{order}-{session.step}-unit"
        for number in range(memory.count_events(session.id, done) + 1, UNITS + 1):
            begin = time.monotonic()
            work.unit(number, seconds)
            memory.count(session.id, done)
            journal.note("unit", number=number, seconds=round(time.monotonic() - begin, 3))
        journal.close()


def main() -> int:
    """Do one start and return the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(TERMINATED))
    arguments = parse(sys.argv[1:])
    serves = arguments.serves
    prompt = "" if serves else sys.stdin.read()
    memory = Memory(Path(os.environ["SEPTET_SCRIPTED_HOME"]))
    try:
        session = memory.resume(arguments.resume) if arguments.resume else memory.begin(arguments.session_id)
    except UnknownSessionError:
        lost = ScriptedSession(None, {"id": arguments.resume})
        reason = f"No conversation found with session ID: {arguments.resume}"
        Stream(sys.stdout.buffer, arguments, Scenario("chaos", {}), lost).print_failure(
            "error_during_execution", reason
        )
        return 1
    agent = Agent(arguments, memory, session)
    if not serves:
        agent.turn(prompt)
    for line in iter(sys.stdin.buffer.readline, b"") if serves else ():
        message = read_message(line)
        if message is not None:
            agent.turn(text_of(message), message)
    return 0


if __name__ == "__main__":
    sys.exit(main())
