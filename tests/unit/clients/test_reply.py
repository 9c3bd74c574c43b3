import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.unreached import away

from clients.cli.terminal.output import ExitCode
from clients.cli.terminal.reply import CommandReply, reply
from septet.errors import (
    SeptetError,
)


def _end(answer: CommandReply | BaseException, *, as_json: bool) -> int:
    """Return the exit code of a command with this answer or error."""

    async def work() -> CommandReply:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    with pytest.raises(SystemExit) as ended:
        reply(work, as_json=as_json)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_an_error_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters in an error or its remedy do not reach the terminal."""
    _end(SeptetError("It \x1b]0;evil\x07 failed.", remedy="Do \x1b[2J this."), as_json=False)
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "\x07" not in err
    assert err.endswith(" this.\n")


def test_what_the_machine_refuses_names_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    """A forbidden file is an error with its path and a remedy, without a traceback."""
    assert _end(PermissionError(13, "Permission denied", "/root/x"), as_json=True) == ExitCode.FAILED
    told = json.loads(capsys.readouterr().out)["error"]
    assert (told["type"], told["message"]) == ("MachineFailed", "/root/x: Permission denied.")
    assert told["remedy"]


def test_a_server_that_goes_away_is_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """An error of Temporal's client is reported as a server that does not answer."""
    assert _end(away(), as_json=True) == ExitCode.SERVER_NOT_REACHED
    told = json.loads(capsys.readouterr().out)["error"]
    assert (told["type"], told["message"]) == ("ServerNotReached", "The Temporal server does not answer: away.")


def test_an_interrupt_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C ends a command with exit code 130."""
    assert _end(KeyboardInterrupt(), as_json=True) == ExitCode.INTERRUPTED
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "Interrupted"


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """A command whose stdout is closed, such as by `head`, ends with exit code 0 and without a message."""
    code = "from clients.cli.terminal.reply import *\nasync def work():\n    return CommandReply({'much': 'x' * 10**6})\nreply(work, as_json=True)"
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as nobody:
        ended = subprocess.run(
            [sys.executable, "-c", code],
            stdout=nobody,
            stderr=subprocess.PIPE,
            cwd=Path(__file__).parents[3],
            check=False,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_stdout_carries_json_alone() -> None:
    """The output of libraries and programs goes to stderr."""
    code = """
import os, subprocess, sys, warnings
from clients.cli.terminal.reply import CommandReply, reply
async def work():
    print("a library")
    os.write(1, b"a program below\\n")
    subprocess.run(["/bin/echo", "a program"], check=True)
    warnings.warn("old")
    return CommandReply({"much": 1})
try:
    reply(work, as_json=True)
except SystemExit as end:
    print("the end")
"""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        check=True,
    )
    assert ended.stdout == '{"ok": true, "much": 1}\n'
    assert [words in ended.stderr for words in ("a library", "a program below", "the end")] == [True] * 3


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["for people", "for programs"])
def test_a_closed_stderr_changes_nothing(options: tuple[str, ...], tmp_path: Path) -> None:
    """With a closed stderr, a successful command's exit code is 0, and stdout holds only its answer."""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SEPTET_STATE_DIR": str(tmp_path / "state")}
    septet = Path(sys.executable).parent / "septet"
    closed = ["sh", "-c", 'exec "$@" 2>&-', "sh", str(septet), "rescue", "list", *options]
    ended = subprocess.run(closed, stdout=subprocess.PIPE, text=True, env=env, check=False)
    assert (ended.returncode, ended.stdout.count("\n")) == (0, 1)
    if options:
        assert ended.stdout == '{"ok": true, "rescues": []}\n'


def test_a_reader_that_has_gone_ends_a_command_at_once() -> None:
    """The command ends without Python's finalization, which a thread of Temporal's SDK may abort."""
    program = "import atexit, os; atexit.register(os.write, 2, b'taken apart'); from clients.cli.main import main; main()"
    reads, writes = os.pipe()
    os.close(reads)
    try:
        ended = subprocess.run(
            [sys.executable, "-c", program, "init", "--help"],
            stdout=writes,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    finally:
        os.close(writes)
    assert (ended.returncode, ended.stderr) == (1, b"")
