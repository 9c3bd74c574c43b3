import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from septet.agents.supervisor.recorder import write_record

pytestmark = pytest.mark.law


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Enter a run's folder, as the run's supervisor does, and return it."""
    with contextlib.chdir(tmp_path):
        yield tmp_path


def test_a_supervisor_of_many_turns_leaves_no_descriptor_open(folder: Path) -> None:
    """A supervisor that writes a record after each of many turns closes every file."""
    for number in range(3):
        write_record("exit.json", b"%d" % number, [])
        assert (folder / "exit.json").read_bytes() == b"%d" % number
    opened = [link.resolve() for link in Path("/proc/self/fd").iterdir()]
    assert [path for path in opened if path.is_relative_to(folder.resolve())] == []


def test_the_record_of_an_end_is_never_there_without_that_of_the_start(folder: Path) -> None:
    """The start's record is on disk first; otherwise a power loss could leave an end without its run."""
    (folder / "run.json").symlink_to("/dev/null")  # a target that cannot be synced
    write_record("exit.json", b"{}", [])
    assert not (folder / "exit.json").exists()
    (folder / "run.json").unlink()
    (folder / "run.json").write_text("{}", encoding="utf-8")
    write_record("exit.json", b"{}", [])
    assert (folder / "exit.json").exists()
