"""Sessions that move from the user's home to a work order's, and back if no sandbox confines the agent."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from fakes.agent_homes import home_of

ID = "0f0e8a3c-2f4b-4a6e-9d5d-1c2b3a495867"
OTHER = "1f0e8a3c-2f4b-4a6e-9d5d-1c2b3a495867"
SESSIONS = {
    "claude": ".claude/projects/-work-wo-1/{id}.jsonl",
    "codex": ".codex/sessions/2026/11/23/rollout-2026-11-23T10-46-04-{id}.jsonl",
    "gemini": ".gemini/tmp/wo-1/chats/session-2026-11-23T10-46-{id:.8}.jsonl",
    "copilot": ".copilot/session-state/{id}/events.jsonl",
    "scripted": ".septet-scripted/sessions/{id}.json",
}


@pytest.mark.parametrize("agent", SESSIONS)
def test_a_session_moves_over_and_back(agent: str, tmp_path: Path) -> None:
    """Only the named session moves, and the copy that was changed last counts: the user's or the work order's."""
    home = home_of(tmp_path, agent)
    for each in (ID, OTHER):
        path = tmp_path / "user" / SESSIONS[agent].format(id=each)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"session {each}")
    home.prepare(ID, 60)
    name = SESSIONS[agent].format(id=ID)
    assert [path for path in home.root.rglob("*") if path.is_file()] == [home.root / name]
    inside, users = home.root / name, tmp_path / "user" / name
    inside.write_text("went on")
    home.prepare(ID, 60)
    assert inside.read_text() == "went on"
    home.give_session_to_user(ID)
    assert users.read_text() == "went on"
    users.write_text("went on, unconfined")
    os.utime(inside, (1_000_000, 1_000_000))
    home.prepare(ID, 60)
    assert inside.read_text() == "went on, unconfined"


@pytest.mark.parametrize("session_id", ["*", "../../secret", "", "a/b"])
def test_an_id_is_no_pattern_and_no_path(session_id: str, tmp_path: Path) -> None:
    """A session's id that is a pattern or a path copies no file."""
    home = home_of(tmp_path, "claude")
    path = tmp_path / "user" / SESSIONS["claude"].format(id=ID)
    path.parent.mkdir(parents=True)
    path.write_text("secret")
    home.prepare(session_id, 60)
    assert not [path for path in home.root.rglob("*") if path.is_file()]


_TABLES = """
    PRAGMA journal_mode = WAL;
    CREATE TABLE session (id TEXT PRIMARY KEY, title TEXT);
    CREATE TABLE message (id TEXT, session_id TEXT REFERENCES session(id), data TEXT);
    CREATE TABLE event (id TEXT, aggregate_id TEXT);
    CREATE TABLE account (id TEXT, access_token TEXT);
    CREATE TABLE project (id TEXT);
    INSERT INTO session VALUES ('ses_1', 'one'), ('ses_2', 'two');
    INSERT INTO message VALUES ('m1', 'ses_1', 'words of ses_1'), ('m2', 'ses_2', 'words of ses_2');
    INSERT INTO event VALUES ('e1', 'ses_1'), ('e2', 'ses_2');
    INSERT INTO account VALUES ('a', 'key-of-an-account');
    INSERT INTO project VALUES ('p');
"""


def _database(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(_TABLES)


def test_of_a_database_one_session_moves_over(tmp_path: Path) -> None:
    """The copied database holds neither other sessions nor the keys of an account."""
    _database(tmp_path / "user/.local/share/opencode/opencode.db")
    home = home_of(tmp_path, "opencode")
    home.prepare("ses_1", 60)
    copy = home.root / ".local/share/opencode/opencode.db"
    content = copy.read_bytes()
    assert b"words of ses_1" in content
    assert b"ses_2" not in content
    assert b"key-of-an-account" not in content
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("SELECT id FROM session").fetchall() == [("ses_1",)]
        assert database.execute("SELECT id FROM project").fetchall() == [("p",)]
        database.execute("UPDATE session SET title = 'went on'")
        database.commit()
    home.prepare("ses_1", 60)
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("SELECT title FROM session").fetchall() == [("went on",)]


def test_a_database_that_is_not_known_is_left_alone(tmp_path: Path) -> None:
    """A database without the session, or a file that is no database, is not copied."""
    users = tmp_path / "user/.local/share/opencode/opencode.db"
    _database(users)
    home = home_of(tmp_path, "opencode")
    for session_id in ("ses_3", "ses_1"):
        home.prepare(session_id, 60)
        assert not (home.root / ".local/share/opencode/opencode.db").exists()
        users.write_text("no database")
