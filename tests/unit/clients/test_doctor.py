import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.shell_programs import write_program

from clients.cli.doctor.machine_checks import (
    Check,
    MissingAgent,
    filter_checks,
    machine_checks,
    without_missing_agents,
)
from septet.agents.sandbox.sandbox import find_sandbox
from septet.settings import Settings

_SEPTET = "from clients.cli.main import main; main()"
_WHO = ("name", "email")
ROOT = Path(__file__).parents[3]
GIT = os.path.dirname(shutil.which("git") or "")
UNREACHED = ("doctor", "--address", "127.0.0.1:1")


def _doctor(home: Path, **environ: str) -> tuple[int, dict[str, Any]]:
    """Return exit code and answer of the real `doctor` with only this environment."""
    return _septet(home, UNREACHED, **environ)


def _septet(home: Path, words: tuple[str, ...], **environ: str) -> tuple[int, dict[str, Any]]:
    """Return exit code and answer of the real command with these arguments."""
    done = _run(home, *words, "--json", environ=environ)
    return done.returncode, json.loads(done.stdout)


def _run(
    home: Path, *words: str, environ: Mapping[str, str], cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run the real command with only this environment."""
    return subprocess.run(
        [sys.executable, "-c", _SEPTET, *words],
        env={"HOME": str(home), "SEPTET_STATE_DIR": str(home / "state"), **environ},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any]]:
    """Return the answer on a machine with git and the scripted agent."""
    return _doctor(tmp_path_factory.mktemp("fit"), PATH=GIT)


def _named(answer: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in answer["checks"]}


def test_a_machine_that_has_what_is_needed_is_fit(fit: tuple[int, dict[str, Any]]) -> None:
    """With git, an agent and a server that can be started, the command succeeds."""
    code, answer = fit
    checks = _named(answer)
    assert (code, answer["ok"]) == (0, True)
    assert (checks["git"]["status"], checks["agent scripted"]["status"]) == ("ok", "ok")


def test_a_scenario_that_there_is_not_is_told_before_anything_starts(tmp_path: Path) -> None:
    """A wrong SEPTET_SCRIPTED_SCENARIO fails `doctor`, and `up` starts nothing."""
    slip = {"PATH": GIT, "SEPTET_SCRIPTED_SCENARIO": "slwo"}
    code, answer = _doctor(tmp_path, **slip)
    assert (code, _named(answer)["scenario"]["status"]) == (1, "failed")
    code, answer = _septet(tmp_path, ("up",), **slip)
    assert (code, answer["error"]["message"]) == (2, "SEPTET_SCRIPTED_SCENARIO: there is no scenario slwo.")
    assert "slow" in answer["error"]["remedy"]
    assert not (tmp_path / "state").exists()


def test_each_finding_has_its_remedy(fit: tuple[int, dict[str, Any]]) -> None:
    """Each warning and each failure has a remedy."""
    assert all(check["remedy"] for check in fit[1]["checks"] if check["status"] != "ok")


def test_without_git_the_machine_is_unfit(tmp_path: Path) -> None:
    """Without git the command fails with exit code 1 and names git."""
    code, answer = _doctor(tmp_path, PATH=str(tmp_path))
    assert (code, answer["ok"]) == (1, False)
    assert _named(answer)["git"]["status"] == "failed"
    assert answer["error"]["message"] == "These checks failed: git."
    assert "remedy" in answer["error"]["remedy"]


def test_a_machine_without_a_filter_of_system_calls_is_a_warning() -> None:
    """A machine without a filter is a warning, and a machine with a filter gives no finding."""
    (check,) = filter_checks("riscv64")
    assert (check.status, "the kernel refuses no system calls" in check.message) == ("warning", True)
    assert list(filter_checks("aarch64")) == []


def test_further_logins_are_listed_each_with_whether_it_can_log_in(tmp_path: Path) -> None:
    """A key in a file and a login in a folder are found; a login without one says how to log in.

    A login that cannot be used keeps a worker from its start, so the command fails.
    """
    for name in ("spare", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "spare/.credentials.json").write_text("{}")
    (tmp_path / "team.env").write_text("ANTHROPIC_API_KEY=the-key-of-the-team\n")
    (tmp_path / "wrong.env").write_text("GITHUB_TOKEN=the-key-of-a-forge\n")
    paths = {"team": "team.env", "spare": "spare", "empty": "empty", "wrong": "wrong.env", "lost": "lost.env"}
    named = ",".join(f"{name}={tmp_path / path}" for name, path in paths.items())
    code, answer = _doctor(tmp_path, PATH=GIT, SEPTET_CLAUDE_LOGINS=named, SEPTET_CLOD_LOGINS="a=/b")
    checks = {name: check for name, check in _named(answer).items() if name.startswith("login ")}
    assert code == 1
    assert [*checks] == [*(f"login {name} of claude" for name in paths), "login a of clod"]
    assert [check["status"] for check in checks.values()] == ["ok", "ok", "warning", *["failed"] * 3]
    assert checks["login team of claude"]["message"].endswith("login found: ANTHROPIC_API_KEY")
    assert f"CLAUDE_CONFIG_DIR={tmp_path / 'empty'} claude" in checks["login empty of claude"]["remedy"]
    assert "GITHUB_TOKEN" in checks["login wrong of claude"]["message"]
    assert "cannot be read" in checks["login lost of claude"]["message"]
    assert "the-key-of" not in json.dumps(answer)


@pytest.mark.needs("bubblewrap")
def test_what_settings_open_to_guests_is_told(tmp_path: Path) -> None:
    """In a sandbox each path and an open network is a warning, and an invalid path fails the check."""
    (tmp_path / "cache").mkdir()
    opened = {"SEPTET_GUEST_PATHS": "~/cache:rw", "SEPTET_GUEST_NETWORK": "open"}
    checks = _named(_doctor(tmp_path, PATH=os.environ["PATH"], **opened)[1])
    if checks["sandbox"]["status"] == "ok":
        path, network = checks["guest path"], checks["guest network"]
        assert (path["status"], str(tmp_path / "cache") in path["message"]) == ("warning", True)
        assert (network["status"], "this machine's network" in network["message"]) == ("warning", True)
    wrong = _named(_doctor(tmp_path, PATH=os.environ["PATH"], SEPTET_GUEST_PATHS="cache")[1])["sandbox"]
    assert (wrong["status"], "SEPTET_GUEST_PATHS" in wrong["message"]) == ("failed", True)


def test_the_identity_of_this_folder_is_not_the_workers(tmp_path: Path) -> None:
    """The identity in a repository's own settings does not count for the worker."""
    repository = tmp_path / "repository"
    for words in (("init", "-q", repository), *(("-C", repository, "config", f"user.{at}", "own") for at in _WHO)):
        subprocess.run(["git", *words], check=True)
    done = _run(tmp_path, *UNREACHED, "--json", environ={"PATH": os.environ["PATH"]}, cwd=repository)
    assert _named(json.loads(done.stdout))["git identity"]["status"] == "warning"


@pytest.mark.parametrize(
    ("source", "hosts"),
    [
        ({"github_token": "t"}, "github.com"),
        ({"gitlab_token": "t", "gitlab_hosts": "gitlab.example.com"}, "gitlab.example.com"),
        ({"gitea_token": "t"}, "codeberg.org, gitea.com"),
        ({"github_app_id": "1", "github_app_key_file": "/app.pem"}, "github.com"),
        ({"forge_logins": "gh,glab"}, "github.com, gitlab.com"),
        ({}, ""),
    ],
)
def test_any_source_of_a_forges_key_is_seen(tmp_path: Path, source: dict[str, str], hosts: str) -> None:
    """A token of any forge, a GitHub App or a program's login counts as a key."""
    settings = Settings(state_dir=tmp_path, environ={"PATH": os.environ["PATH"]}, **source)  # type: ignore[arg-type]
    check = next(check for check in machine_checks(settings, confines=True) if check.name == "forge")
    assert (check.status, hosts in check.message) == ("ok" if hosts else "warning", True)


_NOBODY = """\
#!{python}
import os, sys
options = os.pread(int(sys.argv[2]), 1 << 20, 0).split(b"\\0") if sys.argv[1] == "--args" else ()
if b"--info-fd" in options:
    os.write(int(options[options.index(b"--info-fd") + 1]), b'{{"child-pid": 4194305 }}')
os.execv("{bwrap}", ["{bwrap}", *sys.argv[1:]])
"""
"""A bubblewrap whose reported child process does not exist, so that its network cannot be entered."""


@pytest.mark.needs("bubblewrap")
def test_a_network_that_cannot_be_entered_is_told(tmp_path: Path) -> None:
    """Doctor starts a guest with a network of its own, reports the failure, and leaves no file."""
    path = os.environ["PATH"]
    text = _NOBODY.format(python=sys.executable, bwrap=find_sandbox("auto", os.environ).program)
    program = write_program(tmp_path / "bin" / "bwrap", text)
    told = _named(_doctor(tmp_path, PATH=f"{program.parent}{os.pathsep}{path}")[1])["guest network"]
    assert told["status"] == "warning"
    assert "cannot be entered" in told["message"]
    assert "setns" in told["remedy"]
    assert list((tmp_path / "state").glob("trial-*")) == []


def test_missing_agents_are_told_in_one_line() -> None:
    """Missing agents are one line: a warning if no agent CLI is ready, otherwise a note."""
    ready = Check("agent claude", "ok", "/bin/claude")
    missing = [
        MissingAgent(f"agent {name}", "warning", "It is not on PATH.", "")
        for name in ("codex", "command", "gemini")
    ]
    scripted = Check("agent scripted", "ok", "/bin/scripted")
    alone = without_missing_agents([scripted, *missing])
    assert (alone[0], alone[1].status, alone[1].message) == (
        scripted,
        "warning",
        "codex and gemini are not installed.",
    )
    assert "SEPTET_<AGENT>_PATH" in alone[1].remedy
    assert without_missing_agents([ready, scripted, *missing])[2] == Check(
        "agents", "ok", "codex and gemini are not installed."
    )


def test_a_newer_agent_than_the_tested_one_is_usually_fine(tmp_path: Path) -> None:
    """A newer version is ok; an older one, and an error in place of a version, are a warning that names a trial."""
    environ = {"PATH": os.environ["PATH"], "SEPTET_SANDBOX": "none"}
    printed = {"codex": "codex-cli 9999.0.1", "gemini": "0.0.1", "opencode": "Error: missing.' >&2; exit '1"}
    for name, words in printed.items():
        program = write_program(tmp_path / name, f"#!/bin/sh\necho '{words}'\n")
        environ[f"SEPTET_{name.upper()}_PATH"] = str(program)
    checks = _named(_doctor(tmp_path, **environ, CODEX_API_KEY="k", GEMINI_API_KEY="k")[1])
    newer, older, broken = (checks[f"agent {name}"] for name in ("codex", "gemini", "opencode"))
    assert (newer["status"], "newer than tested; usually fine" in newer["message"]) == ("ok", True)
    assert (older["status"], "untested" in older["message"]) == ("warning", True)
    assert "septet doctor --try gemini" in older["remedy"]
    assert (broken["status"], "no version, but 'Error: missing.'" in broken["message"]) == ("warning", True)


def test_an_agent_that_is_tried_takes_one_turn(tmp_path: Path) -> None:
    """The trial's answer and use are reported, and no run, home, repository or process remains."""
    code, answer = _septet(tmp_path, ("doctor", "--try", "scripted"), PATH=os.environ["PATH"])
    (check,) = answer["checks"]
    assert (code, check["name"], check["status"]) == (0, "trial of scripted", "ok")
    assert "answered 'Done.'" in check["message"]
    assert " in, " in check["message"]
    left = [path for name in ("runs", "homes") for path in (tmp_path / "state" / name).iterdir()]
    assert [*left, *(tmp_path / "state").glob("trial-*")] == []


def test_an_agent_that_is_tried_and_refused_is_told_with_the_remedy(tmp_path: Path) -> None:
    """The error is the agent's own, its remedy ends with a new trial, and the run's files stay."""
    result = {
        "type": "result", "subtype": "success", "is_error": True, "session_id": "s", "num_turns": 1,
        "result": "API Error: 401 invalid x-api-key", "api_error_status": 401, "terminal_reason": "api_error",
    }  # fmt: skip
    program = write_program(
        tmp_path / "claude", f"#!/bin/sh\ncat >/dev/null; echo '{json.dumps(result)}'; exit 1\n"
    )
    environ = {"PATH": os.environ["PATH"], "SEPTET_CLAUDE_PATH": str(program), "SEPTET_SANDBOXED": "true"}
    code, answer = _septet(tmp_path, ("doctor", "--try", "claude"), **environ)
    assert (code, answer["error"]["type"]) == (1, "AgentApi")
    assert answer["error"]["remedy"].endswith("then run `septet doctor --try claude`.")
    assert len([*(tmp_path / "state" / "runs").glob("trial-*/*/stdout.jsonl")]) == 1
