import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.waiting import until

from bench.chaos import agent
from bench.chaos.answers import UNITS
from bench.chaos.journal import Journal, Life
from bench.chaos.processes import of_folder
from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import ExitRecord
from septet.system import processes

WITHIN_SECONDS = 30.0


class Tree:
    """A git tree in which agents of the chaos program work."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "wo-000"
        self.journal = Journal(root / "journal")
        self.started: list[subprocess.Popen[bytes]] = []
        processes.run(["git", "init", "--quiet", str(self.folder)], env=os.environ)

    def start(self, step: str, seconds: float, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start an agent with the prompt of one step."""
        process = self.serve(seconds, *arguments)
        assert process.stdin is not None
        process.stdin.write(f"# {step}\n".encode())
        process.stdin.close()
        process.stdin = None
        return process

    def serve(self, seconds: float, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start an agent without a prompt."""
        env = {
            "SEPTET_SCRIPTED_HOME": str(self.root / "home"),
            "SEPTET_SCRIPTED_CHAOS": str(self.root / "journal"),
            "SEPTET_SCRIPTED_STEP_SECONDS": str(seconds),
        }
        argv = [sys.executable, "-I", "-S", agent.__file__, "-p", "--output-format", "stream-json", "--verbose"]
        process = subprocess.Popen(
            [*argv, *arguments], cwd=self.folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.started.append(process)
        return process

    def say(self, process: "subprocess.Popen[bytes]", text: str) -> None:
        """Send another turn to a process that takes several turns."""
        assert process.stdin is not None
        message = {"type": "user", "message": {"role": "user", "content": text}}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()

    def until_lives(self, count: int) -> list[Life]:
        return until(lambda: lives if len(lives := self.journal.lives()) >= count else None)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    made = Tree(tmp_path)
    yield made
    for process in made.started:
        process.kill()
    for pid in of_folder(tmp_path):
        pid.signal(signal.SIGKILL)
    for process in made.started:
        process.communicate()


def test_the_journal_tells_what_the_tree_holds(tree: Tree) -> None:
    """At an agent's end its journal names each file of the tree with git's id, and all its units."""
    process = tree.start("implement_plan", 0.6)
    out, _ = process.communicate(timeout=WITHIN_SECONDS)
    assert process.returncode == 0
    assert json.loads(out.splitlines()[-1])["type"] == "result"
    (life,) = tree.journal.lives()
    files = [str(path.relative_to(tree.folder)) for path in tree.folder.glob("work/**/*.txt")]
    hashed = processes.run(["git", "hash-object", *files], env=os.environ, cwd=tree.folder).stdout.decode().split()
    assert {path: content.blob for path, content in life.written.items()} == dict(zip(files, hashed, strict=True))
    assert (life.ended, life.step, sorted(life.units)) == (True, "implement_plan", list(range(1, UNITS + 1)))


def test_a_second_agent_in_a_tree_says_so(tree: Tree) -> None:
    """An agent that begins while another lives in its tree records itself as the second writer."""
    tree.start("classify_issue", 60)
    tree.until_lives(1)
    tree.start("classify_issue", 60)
    assert [life.second for life in tree.until_lives(2)] == [False, True]


def test_the_tool_of_a_dead_agent_is_a_writer_too(tree: Tree) -> None:
    """A tool that still runs after its agent's death counts as a writer, and is found as a process of the folder."""
    process = tree.start("implement_plan", 24)
    tools = until(lambda: tree.until_lives(1)[0].tools)
    tools[0].signal(signal.SIGSTOP)  # it lives until the fixture kills it
    process.kill()
    process.wait()
    assert tools[0].lives
    assert tools[0] in of_folder(tree.root)
    tree.start("implement_plan", 60)
    assert tree.until_lives(2)[1].second


def test_a_process_takes_the_turns_of_many_work_orders_and_goes_on_with_what_a_killed_one_left(tree: Tree) -> None:
    """Each turn of a pipeline's agent has a journal under its own work order; a resumed agent does no unit twice."""
    session = "00000000-0000-4000-8000-000000000002"
    streams = ("--input-format", "stream-json", "--replay-user-messages")
    first = tree.serve(3, "--session-id", session, *streams)
    tree.say(first, "# implement_plan\n\nCarry out specs/pl-1-i000-planner-chaos.md.")
    until(lambda: len(tree.until_lives(1)[0].units) >= 2)
    first.kill()
    first.wait()
    second = tree.serve(0.3, "--resume", session, *streams)
    tree.say(second, "Go on.")
    tree.say(second, "# create_commit\n\nThe plan is specs/pl-1-i001-planner-chaos.md.")
    second.communicate(timeout=WITHIN_SECONDS)
    killed, resumed, other = tree.journal.lives()
    assert [life.order for life in (killed, resumed, other)] == ["pl-1-i000", "pl-1-i000", "pl-1-i001"]
    assert not set(killed.units) & set(resumed.units)
    assert set(killed.units) | set(resumed.units) == set(other.units)
    assert (resumed.run, resumed.tree, resumed.ended, other.ended) == (other.run, "wo-000", True, True)
    assert resumed.resumed
    assert not other.resumed


@pytest.mark.parametrize("streams", [(), ("--input-format", "stream-json", "--replay-user-messages")])
def test_a_session_that_is_not_there_is_told_as_claude_tells_it(tree: Tree, streams: tuple[str, ...]) -> None:
    """The agent's result names the unknown session, as after the loss of a host: the ladder then starts a new session."""
    process = tree.serve(0.3, "--resume", "00000000-0000-4000-8000-000000000003", *streams)
    out, _ = process.communicate(b"# implement_plan\n", timeout=WITHIN_SECONDS)
    dialect = adapter_for("claude").dialect()
    dialect.feed(out)
    outcome = dialect.outcome(ExitRecord(cause="exited", exit_code=process.returncode), "")
    assert (outcome.ended, outcome.kind) == ("crashed", "unknown_session")
