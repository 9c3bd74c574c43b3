"""Sessions as files that move from one host's folder of a CLI to another's."""

import io
import tarfile
from pathlib import Path

import pytest

from septet.agents.clis.adapter import Machine
from septet.agents.clis.claude.adapter import CLAUDE
from septet.agents.runs.sessions import pack_session, unpack_session
from septet.errors import AgentError

ID = "0f0e8a3c-2f4b-4a6e-9d5d-1c2b3a495867"


def host(home: Path) -> Machine:
    return Machine({"HOME": str(home)})


def move(one: Path, other: Path) -> None:
    packed = pack_session(CLAUDE, ID, host(one))
    assert packed is not None
    unpack_session(CLAUDE, packed, host(other))


def test_a_session_of_claude_moves_to_another_host_and_back(tmp_path: Path) -> None:
    """The transcript comes to the same place, readable by its user alone, and replaces an older copy."""
    one, two = tmp_path / "one", tmp_path / "two"
    here, there = (root / ".claude" / "projects" / "-work-wo-1" / f"{ID}.jsonl" for root in (one, two))
    here.parent.mkdir(parents=True)
    here.write_text("first turn\n")
    (here.parent / "another.jsonl").write_text("not asked for")
    move(one, two)
    assert list(there.parent.iterdir()) == [there]
    assert (there.read_text(), there.stat().st_mode & 0o777) == ("first turn\n", 0o600)
    there.write_text("first turn\nsecond turn\n")
    move(two, one)
    assert here.read_text() == "first turn\nsecond turn\n"


@pytest.mark.parametrize("session_id", ["*", "../../secret", "", "a/b"])
def test_an_id_is_no_pattern_and_no_path(tmp_path: Path, session_id: str) -> None:
    """A session's id that is a pattern or a path finds no file."""
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / f"{ID}.jsonl").write_text("secret")
    (folder / "b.jsonl").write_text("secret")
    assert pack_session(CLAUDE, session_id, host(tmp_path)) is None


def test_links_do_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    """A session that is a link is not packed."""
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (folder / f"{ID}.jsonl").symlink_to(tmp_path / "secret")
    assert pack_session(CLAUDE, ID, host(tmp_path)) is None


@pytest.mark.parametrize("name", ["../evil.jsonl", "/tmp/evil.jsonl", "projects/p/../../x.jsonl", "settings.json"])
def test_an_archive_writes_sessions_and_nothing_else(tmp_path: Path, name: str) -> None:
    """Names outside of the folder, or of no session, are refused."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = 4
        archive.addfile(entry, io.BytesIO(b"evil"))
    with pytest.raises(AgentError, match="not a session of claude"):
        unpack_session(CLAUDE, packed.getvalue(), host(tmp_path / "home"))
    assert not list(tmp_path.rglob("*.json*"))
