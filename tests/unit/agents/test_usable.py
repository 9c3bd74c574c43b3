"""Whether an agent can be used, and the likeliest reason if it cannot."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from septet.agents.clis.adapter import Machine
from septet.agents.clis.registry import check_usable, usable_agents
from septet.errors import AgentError, AgentMissingError


def machine(
    root: Path, env: Mapping[str, str] | None = None, *, uid: int = 1000, installed: bool = True
) -> Machine:
    programs = root / "bin"
    programs.mkdir(exist_ok=True)
    for name in ("claude", "codex", "opencode") if installed else ():
        (programs / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    return Machine({"PATH": str(programs), "HOME": str(root), **(env or {})}, uid=uid)


def test_a_cli_that_is_not_installed_is_told_before_all_else(tmp_path: Path) -> None:
    """The missing program is reported before the refusal of root."""
    with pytest.raises(AgentMissingError, match="`claude` of the agent claude is not on PATH"):
        check_usable("claude", machine(tmp_path, uid=0, installed=False), tmp_path)
    with pytest.raises(AgentError, match="refuses to work unattended as root"):
        check_usable("claude", machine(tmp_path, {"ANTHROPIC_API_KEY": "k"}, uid=0), tmp_path)


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_cli_without_a_login_is_refused_and_says_where_to_log_in(tmp_path: Path, agent: str) -> None:
    """The worker does not announce the CLI, and the remedy names the login and the variable for a key."""
    with pytest.raises(AgentError, match=f"{agent} is not logged in where the worker runs") as refused:
        check_usable(agent, machine(tmp_path), tmp_path)
    assert f"log in with `{agent}`" in refused.value.remedy
    assert "API_KEY" in refused.value.remedy
    assert agent not in usable_agents(machine(tmp_path), tmp_path)


@pytest.mark.parametrize(
    "env", [{"ANTHROPIC_BASE_URL": "https://gateway.example"}, {"SEPTET_CLAUDE_LOGINS": "team=/etc/team.env"}]
)
def test_a_variable_that_may_log_a_cli_in_is_enough(tmp_path: Path, env: dict[str, str]) -> None:
    """An address that may need no key, or a further login is enough."""
    check_usable("claude", machine(tmp_path, env), tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".claude/.credentials.json", "{}"),
        (".claude/settings.json", '{"apiKeyHelper": "/opt/print-key"}'),
        (".claude.json", '{"primaryApiKey": "k"}'),
    ],
)
def test_a_file_that_may_log_a_cli_in_is_enough(tmp_path: Path, name: str, text: str) -> None:
    """A login, a helper that prints a key, or a key in the settings is enough; other settings are not."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"theme": "dark"}', encoding="utf-8")
    if name != ".claude/.credentials.json":
        with pytest.raises(AgentError, match="not logged in"):
            check_usable("claude", machine(tmp_path), tmp_path)
    path.write_text(text, encoding="utf-8")
    check_usable("claude", machine(tmp_path), tmp_path)


def test_a_cli_with_free_models_or_a_provider_of_its_own_needs_no_login(tmp_path: Path) -> None:
    """Opencode has free models, and codex's settings may name a model of this machine."""
    check_usable("opencode", machine(tmp_path), tmp_path)
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text('model_provider = "ollama"\n', encoding="utf-8")
    check_usable("codex", machine(tmp_path), tmp_path)
