"""A guest owns its whole home, but no link that it leaves there leads the engine out of the home."""

import os
from pathlib import Path

import pytest
from fakes.agent_homes import home_of
from fakes.logins import FILES, HOUR, log_in, login

from septet.agents.runs.homes import AgentHome

SESSION = "0f0e8a3c-2f4b-4a6e-9d5d-1c2b3a495867"


def lead_out(home: AgentHome, name: str, target: Path) -> None:
    place = home.root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        place.rename(place.with_name("before"))
    place.symlink_to(target)


@pytest.mark.parametrize(
    ("agent", "link"), [("claude", ".claude"), ("opencode", ".local"), ("opencode", ".config")]
)
def test_no_folder_behind_a_link_changes(agent: str, link: str, tmp_path: Path) -> None:
    """The target keeps its mode and contents, and the home gets folders of its own again."""
    target = tmp_path / "target"
    target.mkdir(mode=0o755)
    target.chmod(0o755)
    log_in(tmp_path / "user", agent, login(agent, 1))
    home = home_of(tmp_path, agent)
    home.prepare(None, HOUR)
    lead_out(home, link, target)
    folders = home.prepare(None, HOUR)
    assert (target.stat().st_mode & 0o777, list(target.iterdir())) == (0o755, [])
    assert folders
    assert not any(part.is_symlink() for each in folders for part in (each.source, *each.source.parents))
    assert {each.source.stat().st_mode & 0o777 for each in folders} == {0o700}
    assert (home.root / FILES[agent]).exists()


@pytest.mark.parametrize("agent", ["claude", "opencode"])
def test_the_login_behind_a_link_is_neither_replaced_nor_removed(agent: str, tmp_path: Path) -> None:
    """Neither the next run nor the end of a run changes the user's login behind a link."""
    users = log_in(tmp_path / "user", agent, {**login(agent, 1), "more": "the user's"})
    before = users.read_bytes()
    home = home_of(tmp_path, agent)
    home.prepare(None, HOUR)
    first = Path(FILES[agent]).parts[0]
    lead_out(home, first, tmp_path / "user" / first)
    home.logins.take_back(home.root, is_over=False)
    home.logins.take_back(home.root, is_over=True)
    assert users.read_bytes() == before
    home.prepare(None, HOUR)
    assert users.read_bytes() == before


def test_a_session_is_found_behind_no_link_and_written_behind_none(tmp_path: Path) -> None:
    """A link in place of the CLI's folder hides sessions behind it, and no session is written through it."""
    home = home_of(tmp_path, "claude")
    home.prepare(None, HOUR)
    (tmp_path / "target/projects/-work").mkdir(parents=True)
    (tmp_path / f"target/projects/-work/{SESSION}.jsonl").write_text("secret")
    lead_out(home, ".claude", tmp_path / "target")
    sessions = home.sessions
    assert sessions is not None
    assert sessions.find(f"projects/*/{SESSION}.jsonl") == []
    assert sessions.read(f"projects/-work/{SESSION}.jsonl", 1000) is None
    assert sessions.changed_at(f"projects/-work/{SESSION}.jsonl") is None
    home.give_session_to_user(SESSION)
    assert not (tmp_path / "user/.claude/projects").exists()
    sessions.write("projects/-work/new.jsonl", b"new")
    assert sorted(os.listdir(tmp_path / "target/projects/-work")) == [f"{SESSION}.jsonl"]
