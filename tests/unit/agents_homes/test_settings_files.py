"""The part of a user's settings that a guest gets: how the CLI logs in and which model it uses."""

import json
import tomllib
from pathlib import Path

import pytest
from fakes.agent_homes import home_of

from septet.agents.clis.plain_settings import SettingsFile

CODEX = """\
model = "gpt-5.4"
model_provider = "own"
notify = ["sh", "-c", "curl evil"]
[model_providers.own]
name = "Own \\u00fc \\" \\u007f"
base_url = "http://127.0.0.1:8080/v1"
query_params = { api-version = "2026", "a.b" = true }
retries = [1, 2.5]
[model_providers.own.http_headers]
x = "y"
[mcp_servers.bank]
command = "bank"
env = { KEY = "secret" }
[projects."/home/ann"]
trust_level = "trusted"
"""


def prepared(root: Path, agent: str, name: str, content: str) -> bytes | None:
    path = root / "user" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    home = home_of(root, agent)
    home.prepare(None, 60)
    own = home.root / name
    return own.read_bytes() if own.exists() else None


def test_codex_gets_its_provider_and_no_server_of_others(tmp_path: Path) -> None:
    """The provider comes over with all of TOML's kinds of values; servers, programs and trusted folders do not."""
    reduced = prepared(tmp_path, "codex", ".codex/config.toml", CODEX)
    assert reduced is not None
    whole = tomllib.loads(CODEX)
    assert tomllib.loads(reduced.decode()) == {
        key: whole[key] for key in ("model", "model_provider", "model_providers")
    }


GEMINI = """\
{ // mine
 "security": {"auth": {"selectedType": "oauth-personal"}, "folderTrust": {"enabled": true,},},
 /* keys */ "mcpServers": {"bank": {"url": "http://bank", "headers": {"key": "secret"}}}, "hooks": {}, }
"""
OPENCODE = '{"model": "a/b", "provider": {"a": {}}, "mcp": {"x": {}}, "plugin": ["evil"], "formatter": {}}'
COPILOT = '// managed\n{"logged_in_users": [{"login": "ann"}], "copilot_tokens": {}, "trusted_folders": ["/"]}'


@pytest.mark.parametrize(
    ("agent", "name", "content", "kept"),
    [
        ("gemini", ".gemini/settings.json", GEMINI, {"security": {"auth": {"selectedType": "oauth-personal"}}}),
        ("opencode", ".config/opencode/opencode.json", OPENCODE, {"model": "a/b", "provider": {"a": {}}}),
        (
            "copilot",
            ".copilot/config.json",
            COPILOT,
            {"logged_in_users": [{"login": "ann"}], "copilot_tokens": {}},
        ),
    ],
)
def test_a_guest_gets_login_and_model_alone(
    agent: str, name: str, content: str, kept: dict[str, object], tmp_path: Path
) -> None:
    """A file with comments and trailing commas is read as its CLI reads it; servers and plug-ins do not come over."""
    assert json.loads(prepared(tmp_path, agent, name, content) or b"") == kept


@pytest.mark.parametrize(
    ("agent", "name"),
    [("claude", ".claude/settings.json"), ("codex", ".codex/hooks.json"), ("copilot", ".copilot/mcp-config.json")],
)
def test_hooks_and_servers_are_left_out_and_none_stays_from_a_run_before(
    agent: str, name: str, tmp_path: Path
) -> None:
    """The user's hooks do not reach the next run, nor do hooks that an agent left in its home."""
    assert prepared(tmp_path, agent, name, '{"hooks": {"SessionEnd": []}}') is None
    left = tmp_path / "state" / "homes" / "wo-1" / agent / name
    left.write_text('{"hooks": {}}')
    assert prepared(tmp_path, agent, name, '{"hooks": {"SessionEnd": []}}') is None


@pytest.mark.parametrize("content", [b"", b"[1", b"[]", b"\xff", b"[" * 100_000, b'{"a": ' * 100_000])
def test_settings_that_cannot_be_read_are_left_out(content: bytes) -> None:
    """Unreadable settings give no settings and no error."""
    for name in ("~/.gemini/settings.json", "~/.codex/config.toml"):
        assert SettingsFile(name, kept=("model",)).reduce(content) is None
