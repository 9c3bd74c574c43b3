"""The variables that are keys, and a process whose keys no other process can read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.waiting import until

from septet.agents.clis.registry import ADAPTERS
from septet.system.keys import is_key, key_values, keys_in

_PROGRAM = """
import json, os, sys
from septet.system.keys import take_keys_out_of_sight
take_keys_out_of_sight()
names = ("SEPTET_GITHUB_TOKEN", "DATABASE_URL", "PYTHONHASHSEED", "SEPTET_KEYS_DESCRIPTOR")
print(json.dumps({"pid": os.getpid(), "argv": sys.argv[1:], "open": len(os.listdir("/proc/self/fd")),
                  "env": {name: os.environ.get(name) for name in names}}), flush=True)
sys.stdin.read()
"""
KEY = "ghp_a-key-of-the-worker"


@pytest.mark.parametrize(
    "name",
    ["GITHUB_TOKEN", "GH_TOKEN", "SEPTET_CHECKPOINT_KEY", "SEPTET_API_TOKEN", "TEMPORAL_API_KEY", "AWS_SECRET_ACCESS_KEY",
     "PGPASSWORD", "my_secret", "GITHUB_PAT", "AWS_BEARER_TOKEN_BEDROCK"],
)  # fmt: skip
def test_a_key_is_known_by_its_name(name: str) -> None:
    """A variable with a known name, or with an ending of keys, is a key."""
    assert is_key(name, "x")


def test_what_agents_log_in_with_is_a_key() -> None:
    """Every variable of a CLI's login is a key."""
    names = {name for adapter in ADAPTERS.values() for name in adapter.capabilities.login_variables}
    assert all(is_key(name, "x") for name in names)
    assert names


@pytest.mark.parametrize(
    ("name", "value"),
    [("PATH", "/usr/bin:/bin"), ("SEPTET_CLAUDE_PATH", "/usr/bin/claude"), ("SSH_AUTH_SOCK", "/run/agent"),
     ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "8000"), ("HTTPS_PROXY", "http://proxy.example:3128"), ("PYTHONPATH", "a:b"),
     ("SEPTET_CHECKPOINT_REMOTE", "git@ghe.example:o/r"), ("COVERAGE_PROCESS_START", "/x")],
)  # fmt: skip
def test_what_is_no_key_stays(name: str, value: str) -> None:
    """Paths, numbers and addresses without a password are no keys."""
    assert not is_key(name, value)


def test_of_an_address_the_password_alone_is_masked(tmp_path: Path) -> None:
    """An address's password is a key, raw and decoded; the path of a key's file is no key."""
    file = tmp_path / "a-key"
    file.touch()
    env = {
        "HTTPS_PROXY": "http://ada:a%20password@proxy:1",
        "SSL_KEY": str(file),
        "A_TOKEN": KEY,
        "HOME": "/root",
    }
    assert key_values(env) == {"a%20password", "a password", KEY}


@pytest.mark.needs("Linux")
def test_a_process_that_serves_shows_its_keys_to_nobody(tmp_path: Path) -> None:
    """A serving process starts again with the same pid and arguments, and its environment shows no key."""
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    env = {
        "PATH": os.environ["PATH"], "PYTHONHASHSEED": "7", "SEPTET_GITHUB_TOKEN": KEY, "SEPTET_KEYS_DESCRIPTOR_": "",
        "DATABASE_URL": "postgres://ada:a-password@db/x", "PYTHONPATH": os.pathsep.join(sys.path),
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, program, "worker", "--json"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        until(lambda: told["pid"] == process.pid)
        shown = Path(f"/proc/{process.pid}/environ").read_bytes()
        held = [os.readlink(each) for each in Path(f"/proc/{process.pid}/fd").iterdir()]
    finally:
        process.communicate("")
    assert b"PYTHONHASHSEED=7" in shown
    assert KEY.encode() not in shown
    assert b"a-password" not in shown
    assert not any("memfd" in each for each in held)
    assert told["argv"] == ["worker", "--json"]
    assert told["env"] == {
        "SEPTET_GITHUB_TOKEN": KEY,
        "DATABASE_URL": "postgres://ada:a-password@db/x",
        "PYTHONHASHSEED": "7",
        "SEPTET_KEYS_DESCRIPTOR": None,
    }


@pytest.mark.parametrize(
    "document",
    [
        {"claudeAiOauth": {"accessToken": KEY, "refreshToken": KEY, "scopes": ["user:inference"]}},
        {"anthropic": {"type": "oauth", "access": KEY, "refresh": KEY}, "groq": {"type": "api", "key": KEY}},
        {"OPENAI_API_KEY": KEY, "tokens": {"id_token": KEY, "account_id": "0f0e8a3c-2f4b-4a6e-9d5d-1c2b3a495867"}},
        {"copilotTokens": {"https://github.example:ada": KEY}, "loggedInUsers": [{"login": "ada-lovelace-1815"}]},
        {"model_providers": {"own": {"experimental_bearer_token": KEY, "http_headers": {"Authorization": f"Bearer {KEY}"}}}},
        {"provider": {"own": {"options": {"baseURL": f"https://ada:{KEY}@models.example/v1", "APIKey": KEY}}}},
    ],
)  # fmt: skip
def test_a_key_of_a_file_is_known_by_the_name_of_its_field(document: object) -> None:
    """The keys in each CLI's files are found by the names of their fields."""
    assert keys_in(document) == {KEY}


@pytest.mark.parametrize(
    "document",
    [
        {"apiKey": "lm-studio"}, {"apiKey": "not-needed"}, {"apiKey": "sk-no-key-required"}, {"key": "short1"},
        {"apiKey": "{env:A_KEY_OF_A_PROVIDER_1}"}, {"apiKey": "$A_KEY_OF_A_PROVIDER_1"}, {"env_key": "GATEWAY_1_KEY"},
        {"type": "wellknown", "key": "A_TOKEN_OF_THE_COMPANY"}, {"env_http_headers": {"X-Api-Key": "GATEWAY_1_KEY"}},
        {"token_type": "Bearer", "expiry_date": 1795600000000}, {"last_refresh": "2026-11-23T10:00:01Z"},
        {"active": "ada.lovelace.1815@example.com"}, {"scope": "https://www.example.com/auth/cloud-platform"},
        {"monkey": "business-as-usual-1"}, {"model": "claude-opus-4-1-20250805"}, ["access", "refresh"], None,
    ],
)  # fmt: skip
def test_words_in_a_file_are_no_keys(document: object) -> None:
    """Names, placeholders, dates and dummy values in a file are no keys."""
    assert keys_in(document) == frozenset()


def test_of_a_variable_that_holds_settings_the_keys_in_it_are_masked_too() -> None:
    """The keys in a variable with settings are masked, and so is the whole value."""
    settings = json.dumps({"model": "own/large", "provider": {"own": {"options": {"apiKey": KEY}}}})
    assert key_values({"OPENCODE_CONFIG_CONTENT": settings}) == {settings, KEY}
    assert key_values({"OPENCODE_CONFIG_CONTENT": "{no settings"}) == {"{no settings"}
