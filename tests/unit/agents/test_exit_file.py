import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from septet.agents.processes.exit_file import write_record

pytestmark = pytest.mark.law


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a run's folder, in which its supervisor works."""
    with contextlib.chdir(tmp_path):
        yield tmp_path


def test_a_supervisor_of_many_turns_leaves_no_descriptor_open(folder: Path) -> None:
    """One process may serve many turns, and leaves a record after each."""
    for number in range(3):
        write_record("exit.json", b"%d" % number, [])
        assert (folder / "exit.json").read_bytes() == b"%d" % number
    opened = [link.resolve() for link in Path("/proc/self/fd").iterdir()]
    assert [path for path in opened if path.is_relative_to(folder.resolve())] == []


def test_the_record_of_an_end_is_never_there_without_that_of_the_start(folder: Path) -> None:
    """What says whose run it is is on disk first: else a machine that loses power leaves an end that is nobody's."""
    (folder / "run.json").symlink_to("/dev/null")  # which no disk takes
    write_record("exit.json", b"{}", [])
    assert not (folder / "exit.json").exists()
    (folder / "run.json").unlink()
    (folder / "run.json").write_text("{}", encoding="utf-8")
    write_record("exit.json", b"{}", [])
    assert (folder / "exit.json").exists()
