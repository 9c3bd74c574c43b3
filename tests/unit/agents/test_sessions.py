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


def test_a_session_of_claude_is_found_on_the_other_host(tmp_path: Path) -> None:
    """The transcript comes to the same place below the other home, readable by its user alone."""
    transcript = tmp_path / "one" / ".claude" / "projects" / "-work-wo-1" / f"{ID}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text('{"type":"user"}\n')
    (transcript.parent / "another.jsonl").write_text("not asked for")
    packed = pack_session(CLAUDE, ID, host(tmp_path / "one"))
    assert packed is not None
    unpack_session(CLAUDE, packed, host(tmp_path / "two"))
    there = tmp_path / "two" / ".claude" / "projects" / "-work-wo-1"
    assert [path.name for path in there.iterdir()] == [f"{ID}.jsonl"]
    assert (there / f"{ID}.jsonl").read_text() == '{"type":"user"}\n'
    assert (there / f"{ID}.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_session_that_comes_back_to_a_host_is_as_it_was_left_elsewhere(tmp_path: Path) -> None:
    """A session that returns to a host replaces the host's older copy."""
    at_home = tmp_path / "one" / ".claude" / "projects" / "-work-wo-1" / f"{ID}.jsonl"
    at_home.parent.mkdir(parents=True)
    at_home.write_text("first turn\n")
    packed = pack_session(CLAUDE, ID, host(tmp_path / "one"))
    assert packed is not None
    unpack_session(CLAUDE, packed, host(tmp_path / "two"))
    elsewhere = tmp_path / "two" / ".claude" / "projects" / "-work-wo-1" / f"{ID}.jsonl"
    elsewhere.write_text("first turn\nsecond turn\n")
    back = pack_session(CLAUDE, ID, host(tmp_path / "two"))
    assert back is not None
    unpack_session(CLAUDE, back, host(tmp_path / "one"))
    assert at_home.read_text() == "first turn\nsecond turn\n"


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
