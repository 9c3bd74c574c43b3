"""Each visit of a lane has a fresh home, in which only the resumed session of earlier visits lies."""

import sqlite3
from pathlib import Path

import pytest
from fakes.agent_homes import home_of

from septet.agents.runs.homes import AgentHome
from septet.system.guarded_folder import GuardedFolder

FIRST, SECOND = "0f0e8a3c-2f4b-4a6e-9d5d-1c2b3a495867", "1b0e8a3c-2f4b-4a6e-9d5d-1c2b3a495868"
SESSIONS = {
    "claude": (".claude/projects/-work/{id}.jsonl",),
    "codex": (".codex/sessions/2026/11/28/rollout-2026-11-28T20-00-00-{id}.jsonl",),
    "gemini": (".gemini/tmp/shop/chats/session-2026-11-28T20-00-{start}.jsonl",),
    "copilot": (".copilot/session-state/{id}/events.jsonl", ".copilot/session-state/{id}/files/plan.md"),
    "scripted": (".septet-scripted/sessions/{id}.json",),
}
POISON = {
    "claude": (
        ".claude/CLAUDE.md", ".claude/commands/x.md", ".claude/agents/a.md", ".claude/hooks/h", ".claude/plugins/p/x",
        ".claude/projects/-work/memory/MEMORY.md", ".claude/skills/s/SKILL.md", ".claude/projects/-work/more.json",
    ),
    "codex": (
        ".codex/AGENTS.md", ".codex/prompts/p.md", ".codex/skills/s/SKILL.md", ".codex/memories/m.md", ".codex/rules/r",
        ".codex/history.jsonl", ".codex/state_5.sqlite",
    ),
    "gemini": (".gemini/GEMINI.md", ".gemini/extensions/e/x.json", ".gemini/commands/c.toml", ".gemini/.env"),
    "copilot": (".copilot/copilot-instructions.md", ".copilot/agents/a.md", ".copilot/hooks/h.json", ".copilot/mcp.json"),
    "scripted": (".septet-scripted/CLAUDE.md",),
    "opencode": (
        ".local/share/opencode/AGENTS.md", ".local/share/opencode/plugin/p.js", ".config/opencode/AGENTS.md",
        ".config/opencode/plugin/p.js", ".config/opencode/command/c.md",
    ),
}  # fmt: skip
"""The files that each CLI reads at its next start."""


@pytest.fixture(params=POISON)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> AgentHome:
    made = home_of(tmp_path, request.param)
    made.prepare(None, 60)
    return made


def leave(home: AgentHome, names: tuple[str, ...], text: str) -> None:
    for name in names:
        path = home.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def sessions(home: AgentHome, session_id: str) -> tuple[str, ...]:
    patterns = SESSIONS.get(home.adapter.name, ())
    return tuple(each.format(id=session_id, start=session_id[:8]) for each in patterns)


def seen(home: AgentHome) -> dict[str, str]:
    files = [path for folder in home.folders for path in folder.source.rglob("*") if path.is_file()]
    return {str(path.relative_to(home.root)): path.read_text(encoding="utf-8") for path in files}


def test_a_visit_finds_nothing_of_another_one(home: AgentHome) -> None:
    """Instructions, hooks, plug-ins and conversations of an earlier visit are gone."""
    leave(home, POISON[home.adapter.name], "poison")
    leave(home, sessions(home, FIRST), "of the first")
    home.prepare(None, 60)
    assert seen(home) == {}


@pytest.mark.parametrize("home", SESSIONS, indirect=True)
def test_a_visit_that_goes_on_with_a_session_finds_that_one_alone(home: AgentHome) -> None:
    """The resumed session is as its last visit left it, even after visits of other sessions."""
    leave(home, (*sessions(home, FIRST), *POISON[home.adapter.name]), "one")
    home.prepare(None, 60)
    leave(home, (*sessions(home, SECOND), *POISON[home.adapter.name]), "another")
    home.prepare(FIRST, 60)
    assert seen(home) == dict.fromkeys(sessions(home, FIRST), "one")
    leave(home, sessions(home, FIRST), "one, and more")
    home.prepare(SECOND, 60)
    assert seen(home) == dict.fromkeys(sessions(home, SECOND), "another")
    home.prepare(FIRST, 60)
    assert seen(home) == dict.fromkeys(sessions(home, FIRST), "one, and more")


def test_a_process_that_lives_keeps_its_home(home: AgentHome) -> None:
    """A living process has files of its home open, so its home is kept."""
    leave(home, POISON[home.adapter.name], "mine")
    home.prepare(None, 60, anew=False)
    assert set(POISON[home.adapter.name]) <= set(seen(home))


def test_no_link_of_a_visit_is_followed(home: AgentHome, tmp_path: Path) -> None:
    """A link in place of a session or a folder is not followed, and its target is neither moved nor removed."""
    (tmp_path / "user/secret").mkdir(parents=True)
    (tmp_path / "user/secret/key").write_text("secret", encoding="utf-8")
    for name in sessions(home, FIRST):
        (home.root / name).parent.mkdir(parents=True, exist_ok=True)
        (home.root / name).symlink_to(tmp_path / "user/secret/key")
    for name in sessions(home, SECOND)[:1]:
        (home.root / name).parent.mkdir(parents=True, exist_ok=True)
        (home.root / name).hardlink_to(tmp_path / "user/secret/key")
    home.prepare(FIRST, 60)
    assert seen(home) == {}
    folder = home.folders[0].source
    folder.rmdir()
    folder.symlink_to(tmp_path / "user/secret")
    home.prepare(SECOND, 60)
    assert seen(home) == {}
    assert (tmp_path / "user/secret/key").read_text(encoding="utf-8") == "secret"


def test_a_database_comes_back_with_the_session_that_it_has(tmp_path: Path) -> None:
    """The database of opencode comes back by a search of its bytes, without being opened outside."""
    home = home_of(tmp_path, "opencode")
    for session_id in ("ses_one", "ses_two"):
        home.prepare(None, 60)
        database = home.folders[0].source / "opencode.db"
        assert not database.exists()
        with sqlite3.connect(database) as connection:
            connection.execute("CREATE TABLE session (id TEXT)")
            connection.execute("INSERT INTO session VALUES (?)", (session_id,))
        connection.close()
    home.prepare("ses_one", 60)
    folder = GuardedFolder(home.folders[0].source)
    assert folder.contains("opencode.db", b"ses_one")
    assert not folder.contains("opencode.db", b"ses_two")
