import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from septet.state import StateDir


def test_the_folders_are_the_users_alone(tmp_path: Path) -> None:
    """Everything below the state directory is made for its user only, and making it twice is fine."""
    state = StateDir(tmp_path / "deep" / "state")
    state.prepare()
    state.prepare()
    folders = [state.root, state.mirrors, state.workspaces, state.vaults, state.runs, state.agent_homes]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    assert {path.parent for path in (state.server_file, state.server_log, state.database)} == {state.root}


def test_a_host_is_its_directory(tmp_path: Path) -> None:
    """A state directory keeps its id, and another one has another."""
    one, other = StateDir(tmp_path / "one"), StateDir(tmp_path / "other")
    one.prepare()
    other.prepare()
    assert one.host_id() == one.host_id() != other.host_id()
    assert len(one.host_id()) == 12


def test_of_two_that_make_the_id_the_first_one_wins(tmp_path: Path) -> None:
    """Processes that start at once agree on one id, and leave nothing else behind."""
    for number in range(20):
        state = StateDir(tmp_path / str(number))
        state.prepare()
        with ThreadPoolExecutor(8) as pool:
            ids = set(pool.map(lambda state: state.host_id(), [state] * 8))
        assert ids == {state.host_id()}
        assert [path.name for path in state.root.glob("host-id*")] == ["host-id"]


def test_the_token_is_made_once_and_for_its_user_alone(tmp_path: Path) -> None:
    """The HTTP API's token is long, stays the same, and lies in a file that nobody else reads."""
    state = StateDir(tmp_path)
    token = state.api_token()
    assert len(token) >= 40
    assert state.api_token() == token
    assert stat.S_IMODE(state.api_token_file.stat().st_mode) == 0o600
