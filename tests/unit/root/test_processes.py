import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest
from fakes.waiting import until

from septet.errors import HaltedError
from septet.system import processes

ENV = {"PATH": os.environ["PATH"]}


@pytest.mark.parametrize("limit_bytes", [None, 1000])
def test_a_process_is_run_to_its_end(limit_bytes: int | None) -> None:
    """A process returns its output, error output and exit code, and reads the given stdin."""
    argv = ["sh", "-c", "cat; echo oops >&2; exit 3"]
    done = processes.run_program(processes.ProcessStart(argv, ENV), stdin=b"\0in", limit_bytes=limit_bytes)
    assert (done.stdout, done.stderr, done.exit_code) == (b"\0in", b"oops\n", 3)
    assert (done.timed_out, done.cut) == (False, False)
    assert done.argv == ("sh", "-c", "cat; echo oops >&2; exit 3")


def test_nothing_is_inherited(tmp_path: Path) -> None:
    """A process has only the given environment, folder and stdin."""
    done = processes.run(["sh", "-c", "env; pwd; cat"], env={**ENV, "ONLY": "this"}, cwd=tmp_path)
    lines = done.stdout.decode().splitlines()
    assert "ONLY=this" in lines
    assert not any(line.startswith("HOME=") for line in lines)
    assert lines[-1] == str(tmp_path)


def test_a_time_limit_kills_the_whole_group(tmp_path: Path) -> None:
    """After the time limit the process and its children are dead, and the earlier output is kept."""
    script = f"sleep 60 & echo $! > {tmp_path}/child; echo begun; wait"
    begun = time.monotonic()
    done = processes.run(["sh", "-c", script], env=ENV, timeout_seconds=2)
    assert (done.timed_out, done.exit_code, done.stdout) == (True, -signal.SIGKILL, b"begun\n")
    assert time.monotonic() - begun < 30
    _has_ended(int((tmp_path / "child").read_text()))


def test_a_process_that_prints_too_much_is_ended() -> None:
    """A process that reaches the output limit is killed with its group, and returns that much output."""
    done = processes.run_program(processes.ProcessStart(["sh", "-c", "yes & yes"], ENV), limit_bytes=1000)
    assert (len(done.stdout), done.cut, done.timed_out, done.exit_code) == (1000, True, False, -signal.SIGKILL)


@pytest.mark.parametrize(
    ("program", "read"), [("cat", 1_000_000), ("head -c 10", 10), ("exit", 0), ("cat; yes", 2_000_000)]
)
def test_a_process_with_a_limit_reads_what_it_is_given(program: str, read: int) -> None:
    """A process with an output limit gets a stdin larger than a pipe, whether it reads all, a part or nothing."""
    done = processes.run_program(
        processes.ProcessStart(["sh", "-c", program], ENV),
        stdin=b"x" * 1_000_000,
        limit_bytes=2_000_000,
        timeout_seconds=30,
    )
    assert (len(done.stdout), done.timed_out, done.cut) == (read, False, read == 2_000_000)


def test_a_process_with_a_limit_has_its_time_too() -> None:
    """A process with an output limit is also killed at its time limit."""
    done = processes.run_program(
        processes.ProcessStart(["sleep", "600"], ENV), limit_bytes=1000, timeout_seconds=0.3
    )
    assert (done.timed_out, done.cut) == (True, False)


def test_an_interrupt_leaves_nobody_behind(tmp_path: Path) -> None:
    """Ctrl-C during a run kills the started process."""
    code = f"""
        from septet.system import processes
        processes.run(["sh", "-c", "echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; sleep 60"],
                      env={ENV!r})
    """
    own = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=Path(__file__).parents[3], stderr=subprocess.DEVNULL
    )
    try:
        runs = psutil.Process(own.pid)
        until(
            lambda: (tmp_path / "pid").exists() and runs.status() == psutil.STATUS_SLEEPING
        )  # the run waits for its program
        own.send_signal(signal.SIGINT)
        own.wait(20)
        _has_ended(int((tmp_path / "pid").read_text()))
    finally:
        own.kill()
        own.wait()


def test_a_detached_process_has_a_session_of_its_own_and_a_log(tmp_path: Path) -> None:
    """A detached process writes to its log, and its own session keeps our group's signals away."""
    log = tmp_path / "log"
    log.write_text("before\n")
    started = processes.start_detached(["sh", "-c", "echo out; echo err >&2; sleep 60"], env=ENV, log=log)
    try:
        assert os.getsid(started.pid) == started.pid
        until(lambda: log.read_text() == "before\nout\nerr\n")
    finally:
        processes.kill_group(started.pid)
        started.wait()
    processes.kill_group(started.pid)


def _has_ended(pid: int) -> None:
    until(lambda: not _lives(pid))


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_halt_ends_what_runs_and_lets_nothing_more_start() -> None:
    """A halt kills the running process with an error for its work, and the next start fails likewise."""
    halt, began = processes.Halt(), threading.Event()
    told: list[str] = []

    def work() -> None:
        with halt.over():
            began.set()
            for _ in range(2):
                try:
                    processes.run(["/bin/sleep", "60"], env={})
                except HaltedError as error:
                    told.append(error.message)

    thread = threading.Thread(target=work)
    thread.start()
    assert began.wait(10)
    halt.now()
    thread.join(10)
    assert told == ["It was stopped from outside."] * 2


def test_a_time_limit_waits_for_nothing_that_left_the_group(tmp_path: Path) -> None:
    """A time limit does not wait for a process that left the group and keeps the output open."""
    script = f"setsid sleep 60 & echo $! > {tmp_path}/child; echo begun; wait"
    begun = time.monotonic()
    try:
        done = processes.run(["sh", "-c", script], env=ENV, timeout_seconds=1)
    finally:
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
    assert (done.timed_out, done.exit_code, done.stdout) == (True, -signal.SIGKILL, b"begun\n")
    assert time.monotonic() - begun < 50
