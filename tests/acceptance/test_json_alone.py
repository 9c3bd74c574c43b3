"""With `--json`, stdout of each command is JSON alone, whatever git, the machine and the caller print."""

import shutil
import signal
from pathlib import Path
from typing import Any, Final

import pytest
from fakes.command_lines import leaves, options_of, parameters
from fakes.repositories import Origin
from fakes.septet_command import Septet
from fakes.shell_programs import write_program

pytestmark = pytest.mark.faces

NOBODY: Final = "127.0.0.1:1"
SERVES: Final = {"up", "demo", "worker", "serve", "runner"}
"""Commands that keep running if they can work."""
GIVEN: Final = {"stage": "triaged", "issue": "1", "number": "7", "amount": "5 usd", "order_id": "wo-none"}
"""The values by parameter; all other parameters take any word."""
TALKATIVE: Final = {
    "GIT_TRACE": "1",
    "GIT_TRACE2": "1",
    "GIT_TRACE_SETUP": "1",
    "GIT_CURL_VERBOSE": "1",
    "PYTHONWARNINGS": "always",
    "SEPTET_LOG_LEVEL": "debug",
}


COMMANDS: Final = [path for path in leaves() if "--json" in options_of(path)]


def _argv(path: tuple[str, ...], folder: Path) -> list[str]:
    """Return a call with all required values; no object of these names exists."""
    argv = list(path)
    for parameter in parameters(path):
        is_argument, name = not parameter.names[0].startswith("-"), parameter.field_info.name
        value = GIVEN.get(name, f"{folder}/none" if name in {"to", "folder"} else "none")
        if is_argument or parameter.required:
            argv += [value] if is_argument else [parameter.names[0], value]
    return [*argv, "--json"]


def _machine(root: Path, address: str, *, on_stdout: bool) -> Septet:
    """Return a machine with a git that warns; with `on_stdout` it warns on stdout too, and its config is broken."""
    git = shutil.which("git")
    warns = "echo 'warning: git says something' >&2\n" + ("echo 'warning: on stdout'\n" if on_stdout else "")
    programs = write_program(root / "programs" / "git", f'#!/bin/sh\n{warns}exec {git} "$@"\n').parent
    septet = Septet(root / "machine", TALKATIVE | {"TEMPORAL_ADDRESS": address})
    path = {"PATH": f"{programs}:{septet.env['PATH']}"}
    config = "[core\n broken" if on_stdout else "[user]\n name = N\n email = n@example.com\n"
    (septet.root / "home" / ".gitconfig").write_text(config, encoding="utf-8")
    return Septet(septet.root, {**septet.extra, **path})


def _is_an_answer(value: dict[str, Any]) -> bool:
    return value["ok"] is True or set(value["error"]) == {"type", "message", "remedy"}


OF_EACH_KIND: Final = {("show",), ("run",), ("doctor",), ("rescue", "list"), *((name,) for name in SERVES)}
"""A command of each kind: the server first, git, this machine, and all that serve; the others run before a release."""


def each_of(paths: list[tuple[str, ...]]) -> pytest.MarkDecorator:
    marked = [pytest.param(path, marks=[] if path in OF_EACH_KIND else [pytest.mark.release]) for path in paths]
    return pytest.mark.parametrize("path", marked, ids=" ".join)


@each_of(COMMANDS)
def test_where_nobody_answers_and_git_talks_stdout_is_one_object(path: tuple[str, ...], tmp_path: Path) -> None:
    """Without a server, with a broken `.gitconfig`, warnings of git and traces, stdout is one object."""
    septet = _machine(tmp_path, NOBODY, on_stdout=True)
    if path == ("runner",):
        with septet.serving("runner") as running:
            assert running.ready["ok"]
            running.end(signal.SIGTERM)
        assert len(running.lines) == 1
        return
    assert _is_an_answer(septet(*_argv(path, tmp_path), cwd=tmp_path).json)


@pytest.mark.parametrize("words", [("show", "wo-\udcff"), ("list", "--\udcff")])
def test_an_argument_that_is_no_utf8_is_answered_in_utf8(tmp_path: Path, words: tuple[str, ...]) -> None:
    """File names may have any bytes; an answer that names them is still JSON, and so is an answer about an option."""
    assert _is_an_answer(_machine(tmp_path, NOBODY, on_stdout=False)(*words, "--json").json)


@each_of([each for each in COMMANDS if each[0] not in SERVES])
def test_with_a_server_that_knows_nothing_of_it_stdout_is_one_object(
    path: tuple[str, ...], tmp_path: Path, served: Septet, origin: Origin
) -> None:
    """Unknown ids, and possible calls, in a repository whose git warns."""
    septet = _machine(tmp_path, served.address, on_stdout=False)
    options = {"--repo": str(origin.bare), "--within": "0"}
    known = [option for option in options_of(path) if option in options]
    argv = [word for option in known for word in (option, options[option])]
    assert _is_an_answer(septet(*_argv(path, tmp_path), *argv, cwd=tmp_path).json)
