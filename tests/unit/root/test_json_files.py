"""Values in JSON files; a missing or damaged file has no value."""

from pathlib import Path

import msgspec
import pytest

from septet.contracts.wire import Wire
from septet.system.durable import read_model, read_struct


class Model(Wire):
    number: int


class Struct(msgspec.Struct):
    number: int


@pytest.mark.parametrize("content", [b"", b'{"number": 7', b'{"number": "7"}', b"\xff", b"[]"])
def test_a_broken_file_holds_no_value(tmp_path: Path, content: bytes) -> None:
    """A file that is cut short or has another form has no value."""
    (tmp_path / "value.json").write_bytes(content)
    assert read_model(tmp_path / "value.json", Model) is None
    assert read_struct(tmp_path / "value.json", Struct) is None


def test_a_model_that_the_disk_does_not_give_is_an_error(tmp_path: Path) -> None:
    """An error of the disk is raised, since the file may exist and its work must not be repeated."""
    with pytest.raises(IsADirectoryError):
        read_model(tmp_path, Model)
