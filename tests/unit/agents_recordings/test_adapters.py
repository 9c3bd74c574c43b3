"""How codex, gemini, copilot, opencode and a configured program are started."""

import json
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from septet.agents.clis.adapter import Invocation, Machine, Turn
from septet.agents.clis.registry import adapter_for
from septet.errors import AgentError

CLIS: Final = ("codex", "copilot", "gemini", "opencode")
Host = Callable[..., Machine]
SCHEMA: Final = {"type": "object", "properties": {"issue_class": {"type": "string"}}}
SESSION: Final = "0b2d3d0e-3a52-4c8e-9a74-6b0a39d1c111"
KEYS: Final = {
    "codex": "OPENAI_API_KEY",
    "copilot": "COPILOT_GITHUB_TOKEN",
    "gemini": "GEMINI_API_KEY",
    "opencode": "OPENROUTER_API_KEY",
}


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in (*CLIS, "claude", "my-agent"):
        program = folder / name
        program.write_text("#!/bin/sh\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {name: str(folder / name) for name in CLIS}


@pytest.fixture
def host(programs: dict[str, str], tmp_path: Path) -> Host:
    """Return a function that makes a machine whose worker has all kinds of keys in its environment."""
    secrets = {"GH_TOKEN": "forge", "GITHUB_TOKEN": "forge", "SEPTET_GITHUB_TOKEN": "forge", "DATABASE_URL": "x"}
    keys = dict.fromkeys(KEYS.values(), "key")
    own = {"PATH": str(tmp_path / "programs"), "HOME": str(tmp_path / "home"), **secrets, **keys}
    return lambda *, sandboxed=False, **env: Machine(own | env, programs, sandboxed=sandboxed)


def start(name: str, machine: Machine, **asked: Any) -> Invocation:
    return adapter_for(name).invocation(Turn(prompt="Do it.", worktree=Path("/nowhere"), **asked), machine)


def option(invocation: Invocation, flag: str) -> str:
    return invocation.argv[invocation.argv.index(flag) + 1]


def settings(invocation: Invocation) -> list[str]:
    return [value for flag, value in zip(invocation.argv, invocation.argv[1:], strict=False) if flag == "-c"]


@pytest.mark.parametrize("name", CLIS)
def test_prompt_and_keys_are_not_in_the_argv(name: str, programs: dict[str, str], host: Host) -> None:
    """The prompt goes to stdin, and the command line holds neither the prompt nor a key."""
    invocation = start(name, host())
    assert invocation.stdin == b"Do it."
    assert invocation.argv[0] == programs[name]
    assert not {"Do it.", "key", "forge"} & set(invocation.argv)


@pytest.mark.parametrize("name", CLIS)
def test_agent_gets_its_own_key_and_nobody_elses(name: str, host: Host) -> None:
    """The agent's environment is an allow-list without the forge's key and other secrets of the worker."""
    env = start(name, host()).env
    assert env[KEYS[name]] == "key"
    assert "forge" not in env.values()
    assert "DATABASE_URL" not in env


def test_the_password_of_a_proxy_stays_with_the_worker(host: Host) -> None:
    """An agent gets a proxy's address without the worker's account there."""
    machine = host(HTTPS_PROXY="http://ada:a-password@proxy.example:3128", http_proxy="ada:a-password@10.0.0.1:1")
    env = start("codex", machine).env
    assert (env["HTTPS_PROXY"], env["http_proxy"]) == ("http://proxy.example:3128", "10.0.0.1:1")


@pytest.mark.parametrize("name", CLIS)
def test_prompt_that_begins_with_a_slash_is_no_command(name: str, host: Host) -> None:
    """A prompt with `/init` at its start gets a heading, so that the CLI takes it as text."""
    turn = Turn(prompt="/init\ud800", worktree=Path("/nowhere"))
    assert adapter_for(name).invocation(turn, host()).stdin == b"Your task:\n\n/init?"


@pytest.mark.parametrize("sandboxed", [True, False])
def test_copilot_uses_all_that_it_sees_in_a_sandbox_alone(sandboxed: bool, host: Host) -> None:
    """Copilot's own guard of paths is switched off only inside a sandbox."""
    argv = start("copilot", replace(host(), sandboxed=sandboxed)).argv
    assert ("--allow-all-paths" in argv) is sandboxed


@pytest.mark.parametrize("name", ["copilot", "gemini"])
def test_new_session_takes_the_id_that_it_is_given(name: str, host: Host) -> None:
    """A CLI that accepts an id gets the id for a new session only."""
    assert adapter_for(name).capabilities.own_session_id
    machine = host()
    assert option(start(name, machine, session_id=SESSION), "--session-id") == SESSION
    assert "--session-id" not in start(name, machine, session_id=SESSION, resume_id=SESSION).argv


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("codex", f"exec resume .* {SESSION} -$"),
        ("copilot", f"--resume={SESSION}"),
        ("gemini", f"--resume {SESSION}"),
        ("opencode", f"--session {SESSION}"),
    ],
)
def test_session_is_resumed(name: str, words: str, host: Host) -> None:
    """Each CLI gets the resumed session in its own form; codex reads the prompt from stdin after all options."""
    assert re.search(words, " ".join(start(name, host(), resume_id=SESSION).argv))


TURNS: Final[dict[str, dict[str, Any]]] = {
    "start": {},
    "resume": {"resume_id": SESSION},
    "finalizer": {"resume_id": SESSION, "about_session": True, "tools": "none", "schema": {"type": "object"}},
    "warm": {"warm": True},
    "warm resume": {"warm": True, "resume_id": SESSION},
}


MODEL: Final = {"codex": ("-c", 'model="best-1"'), "gemini": ("-m", "best-1")}


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("name", ["claude", *CLIS])
def test_model_is_asked_for(name: str, turn: str, host: Host) -> None:
    """Each start and resume names the turn's model; without a model the CLI chooses."""
    machine = host(sandboxed=True)
    argv = start(name, machine, **TURNS[turn], model="best-1").argv
    assert MODEL.get(name, ("--model", "best-1")) in set(pairwise(argv))
    without = start(name, machine, **TURNS[turn]).argv
    assert not any(word.startswith(("--model", "-m", "model=")) for word in without)


@pytest.mark.parametrize(
    ("tools", "sandbox"), [("all", "workspace-write"), ("read", "read-only"), ("none", "read-only")]
)
def test_codex_sandbox_is_a_setting(tools: str, sandbox: str, host: Host) -> None:
    """The setting replaces the missing flag of `exec resume`, and codex requests no approval."""
    given = settings(start("codex", host(), tools=tools, resume_id=SESSION, model='a"b'))
    assert f'sandbox_mode="{sandbox}"' in given
    assert 'approval_policy="never"' in given
    assert r'model="a\"b"' in given


def test_codex_leaves_its_own_sandbox_only_inside_another(host: Host) -> None:
    """The bypass is used only in another sandbox and for a turn with tools."""
    bypass = "--dangerously-bypass-approvals-and-sandbox"
    assert bypass in start("codex", host(sandboxed=True)).argv
    assert bypass not in start("codex", host()).argv
    assert bypass not in start("codex", host(sandboxed=True), tools="none").argv


def test_codex_hides_its_keys_from_its_tools(host: Host) -> None:
    """The shells of codex's tools inherit no variable that looks like a key."""
    assert 'shell_environment_policy.exclude=["*KEY*","*TOKEN*","*SECRET*"]' in settings(start("codex", host()))


def test_codex_schema_lies_in_its_home_once(tmp_path: Path, host: Host) -> None:
    """The file's name depends on the schema's content, not on the order of its keys."""
    machine = host()
    first = Path(option(start("codex", machine, schema=SCHEMA), "--output-schema"))
    again = option(start("codex", machine, schema=dict(reversed(SCHEMA.items()))), "--output-schema")
    assert json.loads(first.read_text()) == SCHEMA
    assert [first] == list((tmp_path / "home" / ".codex" / "septet-schemas").iterdir())
    assert str(first) == again


@pytest.mark.parametrize(("tools", "mode"), [("all", "yolo"), ("none", "default")])
def test_gemini_mode_follows_the_tools(tools: str, mode: str, host: Host) -> None:
    """Without all tools gemini runs in its default mode, which offers no tool that changes files."""
    invocation = start("gemini", host(), tools=tools)
    assert option(invocation, "--approval-mode") == mode
    assert invocation.env["GEMINI_CLI_NO_RELAUNCH"] == "true"


def test_gemini_retries_are_bounded_by_a_file_that_the_user_can_replace(host: Host) -> None:
    """The project's settings are valid JSON; a path that the user sets replaces them."""
    name = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
    ours = json.loads(Path(start("gemini", host()).env[name]).read_text())
    assert ours["general"]["maxAttempts"] == 3
    theirs = host(GEMINI_CLI_SYSTEM_DEFAULTS_PATH="/theirs.json")
    assert start("gemini", theirs).env[name] == "/theirs.json"


@pytest.mark.parametrize("tools", ["read", "none"])
def test_copilot_denies_what_changes(tools: str, host: Host) -> None:
    """Without all tools, copilot's write and shell tools are denied."""
    argv = start("copilot", host(), tools=tools).argv
    assert {"--deny-tool=write", "--deny-tool=shell"} <= set(argv)
    assert not any(word.startswith("--deny-tool") for word in start("copilot", host()).argv)


def test_opencode_permissions_are_added_to_the_users_configuration(host: Host) -> None:
    """The user's configuration stays, except for the engine's keys; without tools each permission is denied."""
    given = json.dumps({"model": "m/m", "share": "auto", "permission": {"bash": "allow"}})
    machine = host(OPENCODE_CONFIG_CONTENT=given)
    none = json.loads(start("opencode", machine, tools="none").env["OPENCODE_CONFIG_CONTENT"])
    assert none == {"model": "m/m", "share": "disabled", "autoupdate": False, "permission": {"*": "deny"}}
    read = json.loads(start("opencode", machine, tools="read").env["OPENCODE_CONFIG_CONTENT"])
    assert read["permission"]["*"] == "deny"
    assert read["permission"]["read"] == "allow"
    working = start("opencode", machine)
    assert json.loads(working.env["OPENCODE_CONFIG_CONTENT"])["permission"] == {"bash": "allow"}
    assert "--auto" in working.argv


def test_opencode_configuration_that_is_no_object_is_refused(host: Host) -> None:
    """The error names the variable, but not its content."""
    with pytest.raises(AgentError, match="OPENCODE_CONFIG_CONTENT is not a JSON object"):
        start("opencode", host(OPENCODE_CONFIG_CONTENT="[]"))


def test_command_is_started_without_a_shell(host: Host) -> None:
    """The command line is split as a shell would, and the program gets the named variables and the prompt."""
    env = {"SEPTET_COMMAND_ENV": "MY_KEY, OTHER_*", "MY_KEY": "1", "OTHER_A": "2"}
    invocation = start("command", host(SEPTET_COMMAND="my-agent --say 'two words' '$HOME;'", **env))
    assert Path(invocation.argv[0]).name == "my-agent"
    assert invocation.argv[1:] == ("--say", "two words", "$HOME;")
    assert set(invocation.env) == {"PATH", "HOME", "MY_KEY", "OTHER_A"}
    assert invocation.stdin == b"Do it."


@pytest.mark.parametrize(
    ("line", "message"),
    [("", "No program is configured"), ("a 'b", "cannot be split"), ("no-such-program", "PATH")],
)
def test_command_that_cannot_be_started_is_refused(line: str, message: str, host: Host) -> None:
    """A missing configuration, an open quotation and a missing program are errors with a remedy."""
    with pytest.raises(AgentError, match=message) as caught:
        start("command", host(SEPTET_COMMAND=line))
    assert caught.value.remedy
