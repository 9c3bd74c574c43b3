"""Each run gets a copy of a login, and a login that its CLI refreshed is checked and written back."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from fakes.agent_homes import home_of
from fakes.logins import FILES, HOUR, log_in, login

from septet.agents.clis.adapter import Machine
from septet.agents.runs.homes import AgentHome, Homes
from septet.agents.runs.logins import LoginBusyError, Logins
from septet.system.durable import write_durably

AGENTS = ("claude", "codex", "opencode")


def copy_in(home: AgentHome) -> Path:
    return home.root / FILES[home.adapter.name]


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def lent(root: Path, agent: str = "claude", valid_seconds: float = 8 * HOUR) -> tuple[Path, AgentHome]:
    users, home = log_in(root / "user", agent, login(agent, 1, valid_seconds)), home_of(root, agent)
    home.prepare(None, HOUR)
    return users, home


def refresh(home: AgentHome, number: int = 2) -> dict[str, Any]:
    """Replace the copy in a home by the login after this many refreshes, as its CLI does; return the login."""
    document = login(home.adapter.name, number, (7 + number) * HOUR)
    copy_in(home).write_text(json.dumps(document))
    return document


@pytest.mark.parametrize("agent", AGENTS)
def test_what_a_cli_has_refreshed_is_written_back(agent: str, tmp_path: Path) -> None:
    """The user's file gets the new tokens and keeps its other fields, and the copy is removed."""
    users, home = lent(tmp_path, agent)
    copied = read(copy_in(home))
    assert "mcpOAuth" not in copied
    assert {key: value for key, value in login(agent, 1).items() if key in copied}.keys() == copied.keys()
    assert copy_in(home).stat().st_mode & 0o777 == 0o600
    refreshed = login(agent, 2, 9 * HOUR)
    copy_in(home).write_text(json.dumps({**refreshed, "mcpOAuth": "forged"}))
    home.logins.take_back(home.root, is_over=True)
    assert read(users) == refreshed
    assert users.stat().st_mode & 0o777 == 0o600
    assert not copy_in(home).exists()
    assert [path.name for path in (tmp_path / "state" / "logins").glob("*/*")] == ["lock"]


def test_a_login_that_nobody_refreshed_stays_as_it_is(tmp_path: Path) -> None:
    """The user's file keeps its bytes and its time."""
    users, home = lent(tmp_path)
    before = (users.read_bytes(), users.stat().st_mtime_ns, users.stat().st_ino)
    home.logins.take_back(home.root, is_over=True)
    assert (users.read_bytes(), users.stat().st_mtime_ns, users.stat().st_ino) == before


def _emptied(agent: str) -> dict[str, Any]:
    document = login(agent, 2, 9 * HOUR)
    entry = document[{"claude": "claudeAiOauth", "codex": "tokens", "opencode": "anthropic"}[agent]]
    entry |= {key: "" for key in entry if "ccess" in key or "efresh" in key}
    return document


def _of_another(agent: str) -> dict[str, Any]:
    """Return a login of another account; the claims in codex's tokens name the account, not the field beside them."""
    document = login(agent, 2, 9 * HOUR, account="eve")
    if agent == "codex":
        document["tokens"]["account_id"] = "ann"
    return document


FORGERIES: dict[str, Callable[[str], Any]] = {
    "of another account": _of_another,
    "older": lambda agent: login(agent, 0, HOUR),
    "valid for ever": lambda agent: login(agent, 2, 900 * 24 * HOUR),
    "emptied": _emptied,
    "of another form": lambda agent: [login(agent, 2, 9 * HOUR)],
    "nothing": lambda _agent: {},
}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_copy_that_is_no_later_login_of_the_account_is_not_written_back(
    agent: str, forgery: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A forged, older or broken login stays in the agent's home."""
    users, home = lent(tmp_path, agent)
    before = users.read_bytes()
    copy_in(home).write_text(json.dumps(FORGERIES[forgery](agent)))
    home.logins.take_back(home.root, is_over=True)
    assert users.read_bytes() == before
    assert all("access-" not in record.getMessage() for record in caplog.records)


def test_a_folder_in_place_of_a_login_is_none(tmp_path: Path) -> None:
    """A folder is no login, and the next run gets a fresh copy."""
    users, home = lent(tmp_path)
    before = users.read_bytes()
    copy_in(home).unlink()
    copy_in(home).mkdir()
    home.logins.take_back(home.root, is_over=False)
    assert users.read_bytes() == before
    home.prepare(None, HOUR)
    assert read(copy_in(home))["claudeAiOauth"]["accessToken"] == "access-ann-1"


@pytest.mark.parametrize("by", ["the next start", "the next worker", "the janitor"])
def test_a_copy_whose_worker_was_killed_is_written_back(by: str, tmp_path: Path) -> None:
    """The start of any work order, the next worker, or the janitor before it removes the home writes it back."""
    users, home = lent(tmp_path)
    refresh(home)
    if by == "the next start":
        next_one = home_of(tmp_path, "claude", "wo-2")
        next_one.prepare(None, HOUR)
        assert read(copy_in(next_one))["claudeAiOauth"]["refreshToken"] == "refresh-ann-2"
    elif by == "the janitor":
        Homes(tmp_path / "state" / "homes", home.logins).close("wo-1")
    else:
        home.logins.take_all_back()
    assert read(users)["claudeAiOauth"]["refreshToken"] == "refresh-ann-2"


def test_a_login_of_which_the_user_has_another_meanwhile_is_not_written_back(tmp_path: Path) -> None:
    """A login that the user has replaced in the meantime is kept."""
    users, home = lent(tmp_path)
    again = login("claude", 7, account="bob")
    log_in(tmp_path / "user", "claude", again)
    refresh(home)
    home.logins.take_back(home.root, is_over=True)
    assert read(users) == again


@dataclass
class Interrupted:
    """A writer that writes `writes` times and then kills the worker."""

    writes: int

    def __call__(self, path: Path, content: bytes) -> None:
        """Write a file, or raise KeyboardInterrupt."""
        if self.writes == 0:
            raise KeyboardInterrupt
        self.writes -= 1
        write_durably(path, content)


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("writes", [0, 1, 2])
@pytest.mark.parametrize("agent", AGENTS)
def test_a_worker_that_is_killed_as_it_writes_a_login_back_loses_none(
    agent: str, writes: int, number: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After a kill at any write, the next pass writes the newest login of the copy back, and so does the next."""
    users, home = lent(tmp_path, agent)
    second = refresh(home)
    with pytest.raises(KeyboardInterrupt):
        Logins(home.logins.root, Interrupted(writes)).take_back(home.root, is_over=False)
    newest = second if number == 2 else refresh(home, number)
    home.logins.take_back(home.root, is_over=False)
    assert read(users) == newest
    refresh(home, 4)
    home.logins.take_back(home.root, is_over=True)
    assert "refresh-ann-4" in users.read_text()
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_login_that_would_expire_in_a_run_is_refreshed_by_one_agent_alone(agent: str, tmp_path: Path) -> None:
    """The login is lent as expired, so that the first CLI refreshes it; other agents wait for the refresh."""
    (_, first), second = lent(tmp_path, agent, HOUR / 2), home_of(tmp_path, agent, "wo-2")
    file = first.adapter.capabilities.logins[0]
    copy = file.read(copy_in(first).read_bytes())
    assert copy is not None
    assert 0 < (file.expires_at(copy) or 0) < time.time() - HOUR
    with pytest.raises(LoginBusyError):
        second.prepare(None, HOUR)
    assert not copy_in(second).exists()
    refresh(first)
    second.prepare(None, HOUR)
    assert "refresh-ann-2" in copy_in(second).read_text()


@pytest.mark.parametrize("seconds", [-61.0, 3600.0])
def test_an_agent_that_does_not_refresh_holds_nobody_up_for_long(seconds: float, tmp_path: Path) -> None:
    """Other agents start after a minute, and at once if the clock was set back."""
    lent(tmp_path, valid_seconds=60.0)
    second = home_of(tmp_path, "claude", "wo-2")
    (note,) = (tmp_path / "state" / "logins").glob("*/*.json")
    note.write_text(json.dumps({**read(note), "lent_at": time.time() + seconds}))
    second.prepare(None, HOUR)
    assert copy_in(second).exists()


def test_a_user_who_has_logged_out_leaves_no_copy(tmp_path: Path) -> None:
    """After a logout the next run has no copy of the login."""
    users, home = lent(tmp_path)
    users.unlink()
    home.prepare(None, HOUR)
    assert not copy_in(home).exists()


def test_a_login_behind_a_link_of_the_users_is_written_where_it_lies(tmp_path: Path) -> None:
    """The login is written to the target of the user's link, and the link stays."""
    real = log_in(tmp_path / "disk", "claude", login("claude", 1))
    link = tmp_path / "user" / FILES["claude"]
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    home = home_of(tmp_path, "claude")
    home.prepare(None, HOUR)
    refresh(home)
    home.logins.take_back(home.root, is_over=True)
    assert link.is_symlink()
    assert read(real)["claudeAiOauth"]["refreshToken"] == "refresh-ann-2"


def test_a_folder_that_the_cli_s_variable_has_moved_is_lent_from_there(tmp_path: Path) -> None:
    """The login is lent from the folder that the CLI's variable names."""
    log_in(tmp_path, "codex", login("codex", 1)).rename(tmp_path / "auth.json")
    home = home_of(tmp_path, "codex")
    home = replace(home, machine=Machine({"HOME": str(tmp_path / "user"), "CODEX_HOME": str(tmp_path)}))
    (folder,) = home.prepare(None, HOUR)
    assert folder.path == tmp_path
    assert read(copy_in(home))["tokens"]["account_id"] == "ann"
