import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from septet.errors import UsageError
from septet.state import StateDir


def test_what_was_open_to_others_is_closed_to_them(tmp_path: Path) -> None:
    """Files and folders that an earlier release left readable become private; links and their targets stay."""
    root, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    root.mkdir(mode=0o755)
    elsewhere.write_text("")
    elsewhere.chmod(0o644)
    (root / "server.json").write_text("{}")
    (root / "server.json").chmod(0o644)
    (root / "runs").mkdir(mode=0o755)
    (root / "link").symlink_to(elsewhere)
    (root / "broken").symlink_to(root / "nowhere")

    StateDir(root).prepare()

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (root, root / "server.json", root / "runs")}
    assert modes == {"state": 0o700, "server.json": 0o600, "runs": 0o700}
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o644


def test_a_copy_at_another_path_is_refused(tmp_path: Path) -> None:
    """A copied state directory is refused, since its workspaces lead to the original; a link back is fine."""
    original, copy = tmp_path / "state\n", tmp_path / "copy"
    StateDir(original).prepare()
    shutil.copytree(original, copy)
    with pytest.raises(UsageError) as refused:
        StateDir(copy).prepare()
    assert (
        refused.value.message == f"{copy} was at {original} before: its workspaces and snapshots still lead there."
    )
    assert refused.value.remedy == f"Put it back, or make {original} a link to it."
    shutil.rmtree(original)
    with pytest.raises(UsageError):
        StateDir(copy).prepare()
    original.symlink_to(copy)
    StateDir(copy).prepare()
    StateDir(original).prepare()


def test_of_two_that_make_the_id_the_first_one_wins(tmp_path: Path) -> None:
    """Threads that make the id at the same time agree on one id, and leave no other file."""
    for number in range(20):
        state = StateDir(tmp_path / str(number))
        state.prepare()
        with ThreadPoolExecutor(8) as pool:
            ids = set(pool.map(lambda state: state.host_id(), [state] * 8))
        assert ids == {state.host_id()}
        assert [path.name for path in state.root.glob("host-id*")] == ["host-id"]
